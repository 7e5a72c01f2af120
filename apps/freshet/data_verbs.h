#pragma once

#include "verb.h"

namespace freshet::cli {

extern const Verb kDataInspect, kDataConvert, kDataGenerate, kDataSplit;

}  // namespace freshet::cli
