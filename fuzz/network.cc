#include "model/network/description.h"
#include "model/network/picture.h"
#include "world.h"

// Any bytes as the text of a network, with and without data to fit. What is accepted makes sense, and reads back the
// same from the text that is written for it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  using namespace freshet::model::network;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Fit& fit : {Fit{}, Fit{.input = {3, 8, 8}, .classes = 5}}) {
    const auto graph = GraphFromToml(text, fit);
    if (!graph.ok()) {
      CHECK(graph.error().code == Code::kInvalid);
      continue;
    }
    const auto facts = Infer(graph.value());
    CHECK(facts.ok());
    const std::string written = ToToml(graph.value());
    const auto again = GraphFromToml(written);
    CHECK(again.ok());
    CHECK(ToToml(again.value()) == written);
    CHECK(ToSvg(graph.value(), facts.value()).ends_with("</svg>\n"));
  }
  return 0;
}
