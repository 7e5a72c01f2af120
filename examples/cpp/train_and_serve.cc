// Trains a model on made-up data, evaluates it, saves it, and serves it over HTTP until it is told to stop (Ctrl-C).
#include <csignal>
#include <iostream>

#include "base/option.h"
#include "base/system.h"
#include "data/generate.h"
#include "serve/service.h"
#include "train/job.h"

using namespace freshet;

std::atomic<bool> g_stop{false};

Result<void> TrainAndServe(const base::Env& env, const std::string& folder) {
  train::Job job;
  job.input.paths = {folder + "/sea.csv"};
  TRY(base::WriteAtomic(env.files, folder + "/sea.csv",
                        [](base::OutputFile& file) { return data::Generate({.kind = "sea", .rows = 20'000}, file); }));
  optimize::HeapMemory memory;
  train::Outcome outcome = TRY(train::Run(env, memory, job));
  const train::Evaluation judged = TRY(train::Evaluate(env, outcome, job.input.paths));
  std::cout << "error    " << *judged.error_rate() << "\n";
  TRY(train::Save(env.files, outcome, folder + "/sea.model"));

  auto options = TRY(serve::OptionsFor(env.files, folder + "/state/sea", outcome.trained));
  std::vector<serve::Offer> models;
  models.push_back({"sea", std::move(outcome.trained), std::move(options)});
  const auto service = TRY(serve::Service::Open(env, memory, {}, std::move(models)));
  std::cout << "serving  " << service->address() << std::endl;
  return service->Run(g_stop);
}

int main(int count, char** arguments) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { g_stop = true; });
  base::System system([](std::string_view line) { std::cerr << line << "\n"; });
  const auto done = TrainAndServe(system.env(), count > 1 ? arguments[1] : ".");
  if (!done.ok()) std::cerr << ShowOptions(done.error().text) << "\n";
  return done.ok() ? 0 : 1;
}
