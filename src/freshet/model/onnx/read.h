#pragma once

#include <string_view>

#include "model/onnx/document.h"

namespace freshet::model::onnx {

// Reads an ONNX file from memory. The tensors of the document borrow from `bytes`.
//
// The file may come from anywhere, so that it is looked over before anything is built from it: at most
// network::kMostLayers nodes, few enough names and attributes, tensors whose data is all there and as large as their
// shape says. What is allocated is bounded by these limits and by the file's size. Where data lies outside the file
// (external_data) is kept and not looked at: ReadOutside does that. Subgraphs are not read.
//
// Failure: kBadInput with what was found and what was expected.
Result<Document> Read(std::string_view bytes);

}  // namespace freshet::model::onnx
