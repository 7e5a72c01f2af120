#pragma once

#include "base/files.h"
#include "model/onnx/document.h"

namespace freshet::model::onnx {

// Writes a document as one ONNX file, without external data. Tensors are written from where they lie.
// kInvalid when the file would be 2 GB or more, before anything is written.
Result<void> Write(const Document& document, base::OutputFile& file);

}  // namespace freshet::model::onnx
