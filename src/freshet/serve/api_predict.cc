// Predictions: by the version that is current, by an older one, and recommendations.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/standardise.h"
#include "model/ratings.h"
#include "serve/api_parts.h"

namespace freshet::serve {
namespace {

Result<Body> BodyOf(const Request& request) {
  Body body{request.body, {}};
  const std::string_view length = request.Header("Inference-Header-Content-Length");
  if (!length.empty()) body.json_bytes = TRY(ParseJsonBytes(length));
  return body;
}

data::Rows CopyOf(const data::Rows& rows) {
  data::Rows copy;
  copy.width = rows.width;
  copy.ClearRows();
  const data::Batch batch = rows.batch();
  for (std::size_t r = 0; r < batch.rows; ++r) copy.AppendRow(batch, r);
  return copy;
}

}  // namespace

void Api::Infer(Exchange& exchange, ServedModel& model) {
  const auto started = clock_.Now();
  const Request& request = exchange.request();
  deploy::Deployment& deployment = model.deployment();
  Borrowed scratch(*this);
  Response response;
  data::Rows noted;
  const auto answer = [&]() -> Result<void> {
    const auto edition = deployment.Read(scratch->slot);
    const auto& signature = *static_cast<const Signature*>(edition->companion.get());
    TRY(scratch->infer_parser.Parse(TRY(BodyOf(request)), signature, scratch->infer));
    const bool note = !scratch->infer.id.empty();  // its label may come later
    if (note) noted = CopyOf(scratch->infer.rows);
    data::Standardise(edition->description, scratch->infer.rows);
    scratch->scores.resize(scratch->infer.rows.size() * edition->model->scores());
    edition->model->Predict(edition->parameters, scratch->infer.rows.batch(), scratch->workspace, scratch->scores);
    edition->description.target.Unscale(scratch->scores);
    if (note)
      deployment.PostPrediction(scratch->infer.id, std::move(noted), scratch->infer.names, scratch->scores,
                                std::string(request.token_name));
    char version[24];
    const auto end = std::to_chars(version, version + sizeof version, edition->version).ptr;
    const auto json_bytes = TRY(WriteInferResponse({model.name(), {version, static_cast<std::size_t>(end - version)}},
                                                   signature, scratch->infer, scratch->scores, response.body));
    if (json_bytes) {
      response.content_type = "application/octet-stream";
      response.headers.emplace_back("Inference-Header-Content-Length", Str(*json_bytes));
    }
    return {};
  };
  if (auto result = answer(); !result.ok()) {
    response = ErrorOf(result.error());
    Count("infer", "POST", response.status);
    return exchange.Send(std::move(response));
  }
  const double seconds = base::Seconds(clock_.Now() - started);
  model.ObservePrediction(scratch->infer.rows.size(), seconds);
  infer_ok_.Add();
  infer_duration_.Observe(seconds);
  exchange.Send(std::move(response));
}

void Api::InferOld(Exchange& exchange, ServedModel& model, std::uint64_t version) {
  std::shared_ptr<const OldVersion> loaded;
  {
    const base::Lock lock(old_mutex_);
    const auto found = std::find_if(old_.begin(), old_.end(), [&](const auto& old) {
      return old->model == model.name() && old->version == version;
    });
    if (found != old_.end()) {
      std::rotate(found, found + 1, old_.end());
      loaded = old_.back();
    }
  }
  if (loaded != nullptr) return AnswerOld(exchange, model, *loaded);
  // Reading it takes the disk: not on this thread.
  slow_.Post([this, &model, version, exchange = std::make_shared<Exchange>(std::move(exchange))] {
    auto trained = model::LoadModel(files_, model.deployment().versions()->PathOf(version), memory_);
    if (!trained.ok()) return exchange->Send(ErrorResponse(404, Str("version ", version, " cannot be read any more")));
    auto old = std::make_shared<OldVersion>(OldVersion{model.name(), version, std::move(trained).value(), nullptr});
    old->signature = std::make_unique<Signature>(old->trained.description, *old->trained.model);
    {
      const base::Lock lock(old_mutex_);
      old_.push_back(old);
      if (old_.size() > options_.versions_in_memory) old_.erase(old_.begin());
    }
    AnswerOld(*exchange, model, *old);
  });
}

void Api::AnswerOld(Exchange& exchange, ServedModel& model, const OldVersion& old) {
  Borrowed scratch(*this);
  Response response;
  const auto answer = [&]() -> Result<void> {
    TRY(scratch->infer_parser.Parse(TRY(BodyOf(exchange.request())), *old.signature, scratch->infer));
    data::Standardise(old.trained.description, scratch->infer.rows);
    scratch->scores.resize(scratch->infer.rows.size() * old.trained.model->scores());
    old.trained.model->Predict(old.trained.parameters, scratch->infer.rows.batch(), scratch->workspace,
                               scratch->scores);
    old.trained.description.target.Unscale(scratch->scores);
    const auto json_bytes = TRY(WriteInferResponse({model.name(), Str(old.version)}, *old.signature, scratch->infer,
                                                   scratch->scores, response.body));
    if (json_bytes) {
      response.content_type = "application/octet-stream";
      response.headers.emplace_back("Inference-Header-Content-Length", Str(*json_bytes));
    }
    return {};
  };
  if (auto result = answer(); !result.ok()) response = ErrorOf(result.error());
  Count("infer", "POST", response.status);
  exchange.Send(std::move(response));
}

void Api::Recommend(Exchange& exchange, ServedModel& model) {
  Response response;
  const auto answer = [&]() -> Result<void> {
    const model::Ratings* const ratings = model.deployment().model().ratings();
    if (ratings == nullptr)
      return Error{Code::kInvalid, Str("model ", Quoted(model.name()), " is not a factorization: it cannot recommend")};
    const RecommendRequest wanted = TRY(ParseRecommend(exchange.request().body));
    Borrowed scratch(*this);
    const auto edition = model.deployment().Read(scratch->slot);
    const data::Dictionary& users = edition->description.dictionaries[0];
    const data::Dictionary& items = edition->description.dictionaries[1];
    std::vector<std::uint32_t> seen = model.deployment().SeenBy(users.Find(wanted.user));
    for (const std::string& name : wanted.seen)
      if (const std::uint32_t item = items.Find(name); item != data::kUnseen) seen.push_back(item);
    std::sort(seen.begin(), seen.end());
    const auto best = ratings->Recommend(edition->parameters, users.Find(wanted.user), seen, wanted.k);
    response.body = "{\"model_name\":";
    AppendJsonString(model.name(), response.body);
    response.body += Str(",\"model_version\":\"", edition->version, "\",\"user\":");
    AppendJsonString(wanted.user, response.body);
    response.body += Str(",\"known\":", users.Find(wanted.user) != data::kUnseen, ",\"items\":[");
    for (const auto& [item, score] : best) {
      if (response.body.back() != '[') response.body += ',';
      response.body += "{\"item\":";
      AppendJsonString(items.Name(item), response.body);
      response.body += Str(",\"score\":", score, "}");
    }
    response.body += "]}";
    return {};
  };
  if (auto result = answer(); !result.ok()) response = ErrorOf(result.error());
  Count("recommend", "POST", response.status);
  exchange.Send(std::move(response));
}

}  // namespace freshet::serve
