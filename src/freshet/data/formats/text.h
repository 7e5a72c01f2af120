#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace freshet::data {

// Text as sequences of symbols, for recurrent networks. Every byte is a symbol; the alphabet of a data set is the
// symbols that occur in it, in the order of their bytes, and labels.names of its description holds their names. A row
// is `steps` consecutive symbols as numbers 0 … V-1; rows follow each other without gap or overlap, and the label of
// one is the symbol after it. What is left at the end of a file and makes no whole row is left out.
//
// Where labels are not needed the last row may be one that nothing follows, and symbols outside the alphabet become the
// number V; elsewhere a row that has some is bad.
inline constexpr std::string_view kTextFormat = "text";

// What people and model files call a symbol: the byte itself, or \n, \t, \r, \\, \x1b where it cannot be shown.
std::string SymbolName(unsigned char byte);

// The names of all symbols that occur in these files (patterns), in the order of their bytes. As the files fail.
Result<std::vector<std::string>> ScanSymbols(base::Files& files, const std::vector<std::string>& patterns,
                                             const std::atomic<bool>* stop = nullptr);

}  // namespace freshet::data
