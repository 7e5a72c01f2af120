#pragma once

#include <string_view>
#include <vector>

#include "model/onnx/document.h"
#include "model/onnx/wire.h"

namespace freshet::model::onnx {

// One tensor of an ONNX file. Its bytes are borrowed from the file where they lie there as they are, and are as many
// as its shape says; none for types that no model of ours has, and for data outside the file, whose place is
// kept. kBadInput otherwise.
Result<Tensor> ReadTensor(std::string_view bytes);

// Numbers of a repeated field, packed or not. A packed whole number may take one byte and becomes eight, so that there
// is a limit to them.
Result<void> AppendInts(const Field& field, std::vector<std::int64_t>& values);
Result<void> AppendFloats(const Field& field, std::vector<float>& values);

}  // namespace freshet::model::onnx
