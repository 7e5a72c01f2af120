#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/drive.h"
#include "data/open.h"
#include "model/model_file.h"
#include "model/ratings.h"
#include "verb.h"

namespace freshet::cli {
namespace {

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  data::Input input;
  std::string model_path, config;
  std::vector<std::string> users;
  std::uint64_t count = 10;
  bool json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("from", &model_path, "the model file", {.letter = 'i', .value = "FILE"});
  settings.Add("user", &users, "recommend to this user; may be given several times", {.letter = 'u', .value = "ID"});
  settings.Add("count", &count, "how many items", {.letter = 'n', .value = "N", .least = 1});
  settings.Add("json", &json, "one JSON object a user");
  settings.Add("config", &config, "read settings from this TOML file", {.value = "FILE"});
  input.Register(settings, data::Input::Use::kScoring);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (model_path.empty()) return Error{Code::kInvalid, "no model: name it with -i FILE"};
  if (users.empty()) return Error{Code::kInvalid, "no user: name one with --user ID"};

  base::InlineExecutor executor;
  const base::Env env = door.env(executor);
  optimize::HeapMemory memory;
  auto trained = TRY(model::LoadModel(door.files, model_path, memory));
  const model::Ratings* const model = trained.model->ratings();
  if (model == nullptr || trained.description.dictionaries.size() != 2)
    return Error{Code::kInvalid, Str(model_path, ": is a ", trained.model->config().kind,
                                     " model; recommendations need a factorization model")};
  const data::Dictionary& user_names = trained.description.dictionaries[0];
  const data::Dictionary& item_names = trained.description.dictionaries[1];

  std::vector<std::uint32_t> numbers;
  for (const std::string& user : users) {
    numbers.push_back(user_names.Find(user));
    if (numbers.back() == data::kUnseen)
      return Error{Code::kNotFound,
                   Str("user ", Quoted(user), " is not in the model; it knows ", user_names.size(), " users")};
  }
  // What each user has rated already: what the model was trained on, and the ratings given.
  std::vector<std::vector<std::uint32_t>> seen(users.size());
  for (const auto& [user, item] : trained.rated.pairs())
    for (std::size_t u = 0; u < numbers.size(); ++u)
      if (user == numbers[u]) seen[u].push_back(item);
  if (!input.paths.empty()) {
    input.grow = false;
    input.labelled = false;
    const auto source = TRY(data::Open(env, input, trained.description));
    TRY(data::DriveInOrder(executor, *source, [&](data::Rows& rows) -> Result<void> {
      for (std::size_t r = 0; r < rows.size(); ++r)
        for (std::size_t u = 0; u < numbers.size(); ++u)
          if (rows.indices[2 * r] == numbers[u]) seen[u].push_back(rows.indices[2 * r + 1]);
      return {};
    }));
  }
  std::string out;
  for (std::size_t u = 0; u < users.size(); ++u) {
    std::sort(seen[u].begin(), seen[u].end());
    const auto best = model->Recommend(trained.parameters, numbers[u], seen[u], count);
    nlohmann::ordered_json row = {{"schema", 1}, {"user", users[u]}, {"items", nlohmann::ordered_json::array()}};
    for (const auto& [item, score] : best) {
      row["items"].push_back({{"item", std::string(item_names.Name(item))}, {"score", score}});
      if (!json)
        out += Str(users.size() > 1 ? Str(users[u], "\t") : "", item_names.Name(item), "\t", Fixed(score, 4), "\n");
    }
    if (json) out += row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  return Print(door.files, out);
}

}  // namespace

extern const Verb kRecommend = {
    "recommend", "the best items for a user that they have not rated", "-i MODEL --user ID [RATINGS…]",
    "  freshet recommend -i movies.model --user 42 -n 5               leaves out what it was trained on\n"
    "  freshet recommend -i movies.model --user 42 -n 5 newer.dat     and what newer.dat says 42 has rated\n"
    "  freshet recommend -i movies.model --user 42 --user 7 --json\n",
    Run};

}  // namespace freshet::cli
