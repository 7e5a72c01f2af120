#include "deploy/takeover.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/option.h"
#include "model/more_classes.h"

namespace freshet::deploy {
namespace {

using Json = nlohmann::ordered_json;

// What rows look like to a model: all that a description says but what learning changes.
Json InputOf(const data::Description& description) {
  Json json = Json::parse(description.ToJson());
  for (const char* const key : {"version", "encoding", "target", "labels"}) json.erase(key);
  return json;
}

// Is one list how the other begins?
bool Agree(std::size_t a, std::size_t b, const auto& equal) {
  for (std::size_t i = 0; i < std::min(a, b); ++i)
    if (!equal(i)) return false;
  return true;
}

}  // namespace

std::string MarksOf(const optimize::Parameters& parameters, const data::Moments& moments) {
  const std::vector<double> numbers = moments.Save();
  return Str(parameters.Checksum(), "-", base::Crc32cOf(std::span<const double>(numbers)));
}

std::string MarksOf(const model::TrainedModel& trained) {
  const data::Description& input = trained.description;
  return MarksOf(trained.parameters, input.standardise ? input.moments : data::Moments());
}

Result<void> MayTakeOver(const ModelAndInput& next, const ModelAndInput& present) {
  const auto other = [](std::string_view why) {
    return Error{Code::kInvalid, Str("the model file cannot take over: ", why,
                                     "; serve it under another name, or with another ", Option("state"))};
  };
  const data::Description &description = next.description, &serving = present.description;
  const auto& labels = description.labels.names;
  const auto& known = serving.labels.names;
  std::unique_ptr<model::Model> wider;
  if (next.model.scores() < present.model.scores())
    if (auto made = model::WithClasses(next.model, present.model.scores()); made.ok()) wider = std::move(made).value();
  model::ModelConfig config = (wider != nullptr ? *wider : next.model).config();
  config.seed = present.model.config().seed;
  if (config.ToJson() != present.model.config().ToJson())
    return other(Str("it is another model (", config.ToJson(), " where ", present.model.config().ToJson(), " serves)"));
  if (InputOf(description) != InputOf(serving)) return other("it reads other columns or another form of rows");
  if (labels.size() > known.size() || description.labels.kind != serving.labels.kind ||
      description.labels.positive != serving.labels.positive ||
      !Agree(labels.size(), known.size(), [&](std::size_t i) { return labels[i] == known[i]; }))
    return other("its labels are others, or in another order");
  for (std::size_t d = 0; d < serving.dictionaries.size(); ++d) {
    const data::Dictionary &a = description.dictionaries[d], &b = serving.dictionaries[d];
    if (a.size() > b.size() || !Agree(a.size(), b.size(), [&](std::size_t i) {
          return a.Name(static_cast<std::uint32_t>(i)) == b.Name(static_cast<std::uint32_t>(i));
        }))
      return other("its users, items or categories have other numbers than those in the journal");
  }
  return {};
}

Result<std::string> KeepModelFile(base::Files& files, const std::string& directory, std::uint64_t first,
                                  const model::Model& model, const model::TrainedModel& trained) {
  TRY(files.MakeDirectory(directory));
  std::uint64_t n = first;
  while (files.Exists(Str(directory, "/", n, ".model"))) ++n;
  const std::string file = Str(n, ".model");
  TRY(model::SaveModel(files, Str(directory, "/", file), model, trained.parameters, trained.description,
                       trained.metadata, trained.rated, trained.sums ? &*trained.sums : nullptr));
  return file;
}

}  // namespace freshet::deploy
