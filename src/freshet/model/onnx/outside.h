#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/files.h"
#include "model/onnx/document.h"

namespace freshet::model::onnx {

// Opens a file beside the model by the name the model says; must refuse names that lead elsewhere (base::OpenBeneath).
using OpenOutside = std::function<Result<std::unique_ptr<base::InputFile>>(std::string_view name)>;

// Reads the data of the tensors that lie in other files (external_data). Lengths and places are held against the shape
// and against the size of the file before anything is allocated, and together the tensors are no larger than the files
// they come from, so that a small file cannot ask for much by naming one part many times.
//
// Failure: kBadInput names the tensor; what opening and reading say, with the tensor.
Result<void> ReadOutside(Document& document, const OpenOutside& open);

}  // namespace freshet::model::onnx
