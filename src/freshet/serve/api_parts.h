#pragma once

#include "serve/api.h"

// Private to api*.cc.
namespace freshet::serve {

// What one request needs while it is answered; reused by the next.
struct Api::Scratch {
  explicit Scratch(int number) : slot(number) {}
  const int slot;  // of the readers of every deployment
  InferParser infer_parser;
  InferRequest infer;
  LearnParser learn_parser;
  LearnRequest learn;
  model::Workspace workspace;
  std::vector<float> scores;
};

class Api::Borrowed {
 public:
  explicit Borrowed(Api& api);
  ~Borrowed();
  Scratch* operator->() const { return scratch_; }

 private:
  Api& api_;
  Scratch* scratch_;
};

// A kept version, loaded to predict.
struct Api::OldVersion {
  std::string model;
  std::uint64_t version;
  model::TrainedModel trained;
  std::unique_ptr<Signature> signature;
};

struct Api::Route {
  std::string_view name, version, call;
  bool Parse(std::string_view path);
};

// An error as an answer: the code decides the status; only what the client did wrong is told.
Response ErrorOf(const Error& error);

}  // namespace freshet::serve
