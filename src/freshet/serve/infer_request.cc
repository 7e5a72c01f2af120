#include "serve/infer_request.h"

#include <algorithm>

#include "serve/tensor_rows.h"

namespace freshet::serve {
namespace {

Result<std::size_t> FindOutput(std::string_view name, const std::vector<TensorSpec>& outputs) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == name) return i;
    names.push_back(Quoted(outputs[i].name));
  }
  return Error{Code::kBadInput,
               Str("output ", Quoted(name), ": the model has no such output, expected ", Join(names, " or "))};
}

Result<void> ReadWanted(const TensorReader& reader, const Signature& signature, std::vector<WantedOutput>& wanted) {
  wanted.clear();
  for (const OutputTensor& output : reader.outputs())
    wanted.push_back({TRY(FindOutput(output.name, signature.outputs())), output.binary});
  if (!wanted.empty()) return {};
  for (std::size_t i = 0; i < signature.outputs().size(); ++i) wanted.push_back({i, reader.binary_outputs()});
  return {};
}

}  // namespace

struct InferParser::State : ParserState {};

InferParser::InferParser() : state_(std::make_unique<State>()) {}
InferParser::~InferParser() = default;
InferParser::InferParser(InferParser&&) noexcept = default;
InferParser& InferParser::operator=(InferParser&&) noexcept = default;

Result<void> InferParser::Parse(const Body& body, const Signature& signature, InferRequest& request) {
  if (state_->Outgrown(body)) {
    *state_ = {};
    request = {};
  }
  const std::size_t columns = signature.description().columns.size();
  TRY(state_->reader.Read(body, {.inputs = std::max(kMostTensors, columns), .outputs = kMostTensors}));
  const TensorReader& reader = state_->reader;
  request.has_id = reader.has_id();
  request.id = reader.id();
  TRY(ReadWanted(reader, signature, request.wanted));
  TRY(state_->rows.Build(reader.inputs(), signature, false, request.rows, request.names));
  const std::uint64_t scores = signature.model().scores();
  if (request.rows.size() * scores > kMostScores)
    return Error{Code::kBadInput, Str(request.rows.size(), " rows of ", scores, " scores, expected at most ",
                                      kMostScores / scores, " rows")};
  return {};
}

}  // namespace freshet::serve
