#include "model/network/network.h"
#include "model/onnx/export_kinds.h"

namespace freshet::model::onnx {
namespace {

Result<void> AddGraph(Builder& builder, const network::Graph& graph, const optimize::Parameters& parameters,
                      const data::Description& description, const Loss& loss) {
  const std::vector<network::Facts> facts = TRY(network::Infer(graph));
  const std::string input = TRY(AddInput(builder, description, graph.input));
  std::string head = TRY(AddLayers(builder, graph, parameters, facts, input));
  network::Shape shape = facts[static_cast<std::size_t>(graph.heads[0].layer)].shape;
  if (shape.size() == 3 && loss.name() == "softmax") {  // the classes are channels of one pixel
    head = builder.Node("Flatten", {head}, {IntAttribute("axis", 1)}, "scores");
    shape = {shape[0] * shape[1] * shape[2]};
  }
  AddAnswer(builder, loss, description.target, head, shape, false);
  return {};
}

}  // namespace

Result<Document> ExportNetwork(const network::Graph& graph, const optimize::Parameters& parameters, const Loss& loss) {
  Document document;
  document.name = "network";
  Builder builder(document);
  TRY(AddGraph(builder, graph, parameters, {}, loss));
  return document;
}

Result<void> AddNetwork(Builder& builder, const TrainedModel& trained, const ExportOptions&) {
  const network::Graph* const graph = network::GraphOf(*trained.model);
  CHECK(graph != nullptr);
  return AddGraph(builder, *graph, trained.parameters, trained.description, trained.model->loss());
}

}  // namespace freshet::model::onnx
