#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "data/description.h"
#include "data/others.h"
#include "data/rows.h"

namespace freshet::data {

// What a user may say about the input; what is not said is inferred from the head of the data.
struct InputOptions {
  std::string format = "auto";
  std::string label;                     // column by name or by number from 1 (negative: from the end), or "none"; csv
  std::string delimiter;                 // "" infers; "\t" or "tab" is a tab
  std::string header = "auto";           // auto, yes, no
  std::string decimal = "auto";          // auto, point, comma: before the fraction of numbers; csv
  std::vector<std::string> numeric;      // columns to treat as numbers though the head has other text in them
  std::vector<std::string> categorical;  // columns to treat as categories though they look like numbers
  std::vector<std::string> ignore;       // columns to leave out
  std::string weight_column, time_column;
  std::string labels_path;           // idx: the file of labels
  std::string positive;              // one class against the rest
  std::vector<std::string> classes;  // label values in order
  Labels::Kind task = Labels::Kind::kAuto;
  int index_base = -1;  // libsvm: 0 or 1; -1 infers
  int bits = 0;
  bool standardise = true;  // numeric columns of tables
  bool joint_ids = false;
  std::string image_size;    // folders of images: to which they are brought, N or HxW
  bool grey = false;         // and whether as brightness alone
  std::uint64_t steps = 32;  // text: symbols of a row
  Others* others = nullptr;  // who read other shares, with whom what is inferred is agreed on; null: nobody
};

// How a stream of bytes may be cut into chunks that can be parsed alone.
struct Cutting {
  enum class Kind { kLines, kQuotedLines, kRecords } kind = Kind::kLines;
  std::uint64_t header_bytes = 0;  // before the first record; a file that has some cannot be one of several
  std::uint64_t record_bytes = 0;
  std::uint64_t ahead_bytes = 0;  // how much of what follows the last record a chunk also shows, where there is more
};

// Turns chunks of one format into rows. Rows that are wrong are left out and noted in rows.bad; the rest is kept.
//
// Threads: Parse is const and may run on many threads at once, each with its own Rows.
class Parser {
 public:
  virtual ~Parser() = default;
  // Parses rows.text (whole lines or records; readable for kPadding bytes past its end, which are newlines) and appends
  // to rows. rows.begin says where the chunk stands in its file.
  virtual void Parse(Rows& rows) const = 0;
  virtual Cutting cutting() const { return {}; }

  static constexpr std::size_t kPadding = 64;
};

// The beginning of the first file: unpacked, without a byte-order mark, whole lines if it is text, and padded like a
// chunk.
struct Head {
  std::string_view bytes;
  std::string path;
};

// A format: one file and one line in the registry (formats.cc).
struct Format {
  std::string_view name;
  std::string_view help;
  // Could these bytes be of this format? Asked in the registry's order; the first yes wins.
  bool (*looks_like)(const Head& head);
  // Fills in the description from the head and the options. kBadInput with file:line:column when the head is malformed.
  Result<void> (*describe)(const Head& head, const InputOptions& options, base::Files& files, Description& description);
  // `labelled` false: rows may come without a label, and one that is not known counts as none (predict). `head` is the
  // first bytes of the very data to be parsed, for formats whose header must match or that have companions (idx
  // labels).
  Result<std::unique_ptr<Parser>> (*make)(const Head& head, const Description& description, const InputOptions& options,
                                          base::Files& files, bool labelled);
};

std::span<const Format> Formats();
Result<const Format*> FindFormat(std::string_view name);
Result<const Format*> SniffFormat(const Head& head);

// The labels as `options` states them and `seen` in the head shows them (see Labels::Settle), here and in the shares of
// others.
Result<void> SettleLabels(const Head& head, const InputOptions& options, const std::vector<std::string>& seen,
                          Labels& labels);

// kInvalid unless features can be hashed to 2^bits; 0 means that they are not.
Result<void> CheckBits(int bits);

// Helps parsers note a bad row: the row [begin, end) with the mistake at `at`.
void NoteBadRow(Rows& rows, std::uint64_t line, const char* begin, const char* end, const char* at, std::string what);

}  // namespace freshet::data
