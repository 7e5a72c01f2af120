// The learning extension: observations, feedback, and what an operator may do.

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/option.h"
#include "serve/api_parts.h"

namespace freshet::serve {
namespace {

using Json = nlohmann::ordered_json;

Result<Body> BodyOf(const Request& request) {
  Body body{request.body, {}};
  const std::string_view length = request.Header("Inference-Header-Content-Length");
  if (!length.empty()) body.json_bytes = TRY(ParseJsonBytes(length));
  return body;
}

Result<std::uint64_t> VersionOf(const std::string& text) {
  std::uint64_t version = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), version);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return Error{Code::kNotFound,
                 Str("there is no version ", Quoted(text), "; GET …/versions lists those that are kept")};
  return version;
}

}  // namespace

void Api::Learn(Exchange& exchange, ServedModel& model) {
  Borrowed scratch(*this);
  const auto parse = [&]() -> Result<void> {
    const auto edition = model.deployment().Read(scratch->slot);
    const auto& signature = *static_cast<const Signature*>(edition->companion.get());
    return scratch->learn_parser.Parse(TRY(BodyOf(exchange.request())), signature, scratch->learn);
  };
  if (auto parsed = parse(); !parsed.ok()) {
    Count("learn", "POST", 400);
    return exchange.Send(ErrorOf(parsed.error()));
  }
  auto shared = std::make_shared<Exchange>(std::move(exchange));
  model.deployment().PostLearn(
      std::move(scratch->learn.rows), std::move(scratch->learn.names), std::move(scratch->learn.ids),
      [this, &model, shared](Result<deploy::LearnReply> reply) {
        Response response;
        if (reply.ok()) {
          model.ObserveLearned(reply.value());
          response.body =
              Str("{\"model_name\":\"", model.name(), "\",\"accepted\":", reply.value().accepted,
                  ",\"duplicates\":", reply.value().duplicates, ",\"sequence\":", reply.value().last_sequence,
                  ",\"durable\":", reply.value().durable, "}");
        } else {
          response = ErrorOf(reply.error());
        }
        Count("learn", "POST", response.status);
        shared->Send(std::move(response));
      },
      std::move(scratch->learn.new_labels));
  scratch->learn = LearnRequest();
}

void Api::Feedback(Exchange& exchange, ServedModel& model) {
  Borrowed scratch(*this);
  FeedbackRequest feedback;
  const auto parse = [&]() -> Result<void> {
    const auto edition = model.deployment().Read(scratch->slot);
    const auto& signature = *static_cast<const Signature*>(edition->companion.get());
    return scratch->learn_parser.ParseFeedback(exchange.request().body, signature, feedback);
  };
  if (auto parsed = parse(); !parsed.ok()) {
    Count("feedback", "POST", 400);
    return exchange.Send(ErrorOf(parsed.error()));
  }
  auto shared = std::make_shared<Exchange>(std::move(exchange));
  model.deployment().PostFeedback(
      feedback.id, feedback.labels,
      [this, &model, shared, id = feedback.id](Result<deploy::LearnReply> reply) {
        Response response;
        if (reply.ok()) {
          const deploy::LearnReply& r = reply.value();
          model.ObserveFeedback(r);
          const std::string_view result = r.accepted > 0 ? "accepted" : (r.duplicates > 0 ? "duplicate" : "expired");
          response.body = "{\"id\":";
          AppendJsonString(id, response.body);
          response.body +=
              Str(",\"result\":\"", result, "\",\"accepted\":", r.accepted, ",\"duplicates\":", r.duplicates,
                  ",\"expired\":", r.expired, ",\"sequence\":", r.last_sequence, ",\"durable\":", r.durable, "}");
        } else {
          response = ErrorOf(reply.error());
        }
        Count("feedback", "POST", response.status);
        shared->Send(std::move(response));
      },
      feedback.owner, std::move(feedback.new_labels));
}

// The regular files that a path or a pattern names, without links: each below one of the roots, by its name and after
// links have been followed. A pipe would never end, and a folder is not a file of a format.
Result<std::vector<std::string>> Api::DatasetFiles(const std::string& path) const {
  const auto below = [this](const std::string& name) {
    return std::any_of(options_.dataset_roots.begin(), options_.dataset_roots.end(), [&](const std::string& root) {
      return name.size() > root.size() + 1 && name.starts_with(root) && name[root.size()] == '/';
    });
  };
  const Error outside{Code::kBadInput,
                      Str("path ", Quoted(path), ": expected a file below a directory that the server was given by ",
                          Option("datasets"))};
  if (path.find("..") != std::string::npos || !below(path)) return outside;
  std::vector<std::string> files;
  for (const std::string& name : TRY(files_.Glob(path))) {
    std::error_code error;
    const std::string real = std::filesystem::canonical(name, error).string();
    if (error || !below(real)) return outside;
    if (!std::filesystem::is_regular_file(real, error))
      return Error{Code::kBadInput, Str("path ", Quoted(path), ": ", Quoted(name),
                                        " is no regular file, expected one; name the files of a ",
                                        "folder by a pattern such as 'folder/*.csv'")};
    files.push_back(real);
  }
  return files;
}

void Api::Control(Exchange& exchange, ServedModel& model, std::string_view call_view) {
  const std::string call(call_view);
  const std::string body(exchange.request().body);
  auto shared = std::make_shared<Exchange>(std::move(exchange));
  const deploy::Done done = [this, shared, call](Result<std::string> result) {
    Response response;
    if (result.ok())
      response.body = std::move(result).value();
    else
      response = ErrorOf(result.error());
    Count(call, "POST", response.status);
    shared->Send(std::move(response));
  };
  const auto act = [&]() -> Result<void> {
    deploy::Deployment& deployment = model.deployment();
    if (call == "iterate") {
      TRY(ParseIterate(body));
      deployment.PostIterate(done);
    } else if (call == "rollback") {
      RollBackRequest request = TRY(ParseRollBack(body));
      deploy::Discard discard;
      if (request.discard) discard.sequences.Add(request.discard->first, request.discard->second - 1);
      if (request.times) discard.times = {request.times->first, request.times->second - 1};
      discard.ids = std::move(request.ids);
      deployment.PostRollBack(TRY(VersionOf(request.version)), std::move(discard), request.relearn, done);
    } else if (call == "pin") {
      const PinRequest request = TRY(ParsePin(body));
      deployment.PostPin(TRY(VersionOf(request.version)), request.pinned, done);
    } else if (call == "deploy") {
      const DeployRequest request = TRY(ParseDeploy(body));
      const std::vector<std::string> files = TRY(DatasetFiles(request.path));
      if (files.size() != 1)
        return Error{Code::kBadInput,
                     Str("path ", Quoted(request.path), ": names ", files.size(), " files, expected one")};
      slow_.Post([this, &deployment, request, file = files[0], done] {  // reading it takes the disk
        auto trained = model::LoadModel(files_, file, memory_);
        if (!trained.ok())
          return done(Error{trained.error().code == Code::kNotFound ? Code::kNotFound : Code::kBadInput,
                            Str("path ", Quoted(request.path), ": is no model file that can be read")});
        deployment.PostDeploy(std::move(trained).value(), request.relearn, done);
      });
    } else {
      const DatasetRequest request = TRY(ParseDataset(body));
      deployment.PostDataset(TRY(DatasetFiles(request.path)), done);
    }
    return {};
  };
  if (auto result = act(); !result.ok()) done(result.error());
}

}  // namespace freshet::serve
