#include "model/network/zoo.h"

#include <array>
#include <string>
#include <vector>

#include "model/network/zoo_networks.h"

namespace freshet::model::network {
namespace {

constexpr std::size_t kNetworks = 9;

// In the order of Zoo().
constexpr std::array<zoo::Builder*, kNetworks> kBuilders = {zoo::Mlp,      zoo::LeNet5,        zoo::CifarQuick,
                                                            zoo::AlexNet,  zoo::AlexNetGroups, zoo::GoogLeNet,
                                                            zoo::ResNet20, zoo::CharLstm,      zoo::Autoencoder};

std::string Show(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += Str(text.empty() ? "" : " x ", extent);
  return text;
}

}  // namespace

std::span<const ZooEntry> Zoo() {
  static const std::array<ZooEntry, kNetworks> entries = {{
      {"mlp", "one hidden layer of 50 rectified units", {1, 28, 28}, 10},
      {"lenet5", "two convolutions and two dense layers, for digits (LeNet-5 as it is built today)", {1, 28, 28}, 10},
      {"cifar-quick", "three convolutions for small photographs, trained in minutes (Caffe)", {3, 32, 32}, 10},
      {"alexnet", "AlexNet in one tower: five convolutions, three large dense layers", {3, 227, 227}, 1000},
      {"alexnet-groups", "AlexNet as published: convolutions 2, 4 and 5 in two groups", {3, 227, 227}, 1000},
      {"googlenet", "Inception v1: nine modules, two auxiliary heads while training", {3, 224, 224}, 1000},
      {"resnet20", "20 layers with batch norm and shortcuts, for small photographs", {3, 32, 32}, 10},
      {"char-lstm", "the next symbol of a text: embedding, 128 LSTM units, scores at every step", {64}, 128},
      {"autoencoder", "dense 128-32-128 and back to its input", {1, 28, 28}, 0},
  }};
  return entries;
}

Result<Graph> MakeZoo(std::string_view name, const Shape& input, std::int64_t classes, const ZooOptions& options) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kNetworks; ++i) {
    const ZooEntry& entry = Zoo()[i];
    names.emplace_back(entry.name);
    if (entry.name != name) continue;
    Graph alone(input);
    alone.AddHead(0);
    TRY(Infer(alone));  // builders may count on sizes that make sense
    Graph graph = kBuilders[i](input, classes, options);
    TRY(Infer(graph).While(Str("making ", name, " for this input; it was made for ", Show(entry.input))));
    return graph;
  }
  const std::string nearest = Nearest(name, names);
  return Error{Code::kInvalid,
               Str("no network is called ", Quoted(name), "; ",
                   nearest.empty() ? Str("expected one of ", Join(names, ", ")) : Str("did you mean ", nearest, "?"))};
}

}  // namespace freshet::model::network
