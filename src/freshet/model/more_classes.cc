#include "model/more_classes.h"

#include "model/network/description.h"
#include "model/network/network.h"

namespace freshet::model {
namespace {

Error Refused(std::string_view why) { return {Code::kInvalid, Str("the model cannot learn new classes: ", why)}; }

// The heads are what gives the scores; all else stays as it is.
Result<std::string> NetworkWithClasses(const Model& model, std::uint64_t classes) {
  const network::Graph* const of_model = network::GraphOf(model);
  CHECK(of_model != nullptr);
  network::Graph graph = *of_model;
  if (graph.target != network::Target::kLabel) return Refused("its network does not learn labels");
  for (const network::Head& head : graph.heads) {
    network::Layer& layer = graph.layers[static_cast<std::size_t>(head.layer)];
    if (layer.op != network::Op::kDense || layer.outputs != static_cast<std::int64_t>(model.scores()))
      return Refused(Str("layer ", Quoted(layer.name), ", a head of its network, is not a fully connected one with ",
                         model.scores(), " outputs"));
    layer.outputs = static_cast<std::int64_t>(classes);
  }
  return network::ToToml(graph);
}

}  // namespace

Result<std::unique_ptr<Model>> WithClasses(const Model& model, std::uint64_t classes) {
  ModelConfig config = model.config();
  if (config.loss != "softmax")
    return Refused(
        Str("its loss is ", config.loss, ", which tells no more than two classes apart; train with softmax"));
  if (config.kind == "network")
    config.network = TRY(NetworkWithClasses(model, classes));
  else if (config.kind != "linear")
    return Refused(Str("it is a ", config.kind, " model, expected linear or a network"));
  config.classes = classes;
  return Model::Make(config);
}

}  // namespace freshet::model
