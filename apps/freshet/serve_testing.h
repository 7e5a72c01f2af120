#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include "base/random.h"
#include "process_testing.h"
#include "serve/api_testing.h"

namespace freshet::cli {

using serve::ApiClient;
using serve::Json;
using serve::Reply;

// `freshet serve` as a process of its own, on a free port.
class Server {
 public:
  Server(const base::ScratchDirectory& scratch, std::vector<std::string> arguments, Surroundings around = {})
      : scratch_(scratch), output_(Str("serve", ++count_, ".out")) {
    arguments.insert(arguments.begin(), {"serve", "--listen", "127.0.0.1:0", "--json", "--threads", "2"});
    around.output = scratch / output_;
    const auto started = std::chrono::steady_clock::now();
    process_.emplace(scratch, arguments, around);
    // It says where it listens once it has recovered.
    if (process_->WaitUntil([this] { return scratch_.Read(output_).ends_with('\n'); }))
      port_ = Json::parse(scratch_.Read(output_), nullptr, false).value("port", 0);
    ready_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }

  bool up() const { return port_ > 0; }
  int port() const { return port_; }
  pid_t pid() const { return process_->pid(); }
  double ready_seconds() const { return ready_seconds_; }
  void Signal(int signal) { kill(process_->pid(), signal); }
  bool Running() { return process_->Running(); }
  Finished Wait() { return process_->Wait(); }
  Finished Stop(int signal = SIGTERM) {
    Signal(signal);
    return Wait();
  }
  // Over a connection of its own.
  Json Get(const std::string& path) { return ApiClient(port_).Get(path).json; }
  Reply Post(const std::string& path, const Json& body) { return ApiClient(port_).Post(path, body); }
  Json Stats(const std::string& model) { return Get(Str("/v2/models/", model, "/stats")); }
  // Once so many observations are in them, which comes a moment after their acknowledgement, and nothing is being
  // trained.
  Json SettledStats(const std::string& model, std::uint64_t observations) {
    Json stats;
    const auto settled = [&] {
      stats = Stats(model);
      return stats["learning"]["observations"] == observations && stats["training"]["running"] == false;
    };
    bool done = false;  // a network under a sanitizer, beside other work, takes its time
    for (int patience = 0; patience < 6 && !done; ++patience) done = serve::Eventually(settled);
    EXPECT_TRUE(done) << observations << " observations wanted: " << stats;
    return stats;
  }

 private:
  static inline int count_ = 0;
  const base::ScratchDirectory& scratch_;
  const std::string output_;
  std::optional<Process> process_;
  int port_ = 0;
  double ready_seconds_ = 0;
};

// Rows of three numbers, as data of the kind `sea` has them, made up from their number.
inline Json SeaInput(std::uint64_t first, std::uint64_t rows) {
  std::vector<std::vector<double>> values;
  for (std::uint64_t n = first; n < first + rows; ++n) {
    base::Random random(11, n);
    values.push_back({10 * random.Uniform(), 10 * random.Uniform(), 10 * random.Uniform()});
  }
  return serve::Matrix(values);
}
inline Json SeaLesson(std::uint64_t first, const std::vector<std::string>& ids) {
  const Json input = SeaInput(first, ids.size());
  Json labels = Json::array();
  for (std::size_t r = 0; r < ids.size(); ++r)
    labels.push_back(input["data"][3 * r].get<double>() + input["data"][3 * r + 1].get<double>() > 9 ? 1 : 0);
  return serve::Inputs({input, serve::Tensor("labels", "INT64", labels), serve::Tensor("ids", "BYTES", ids)});
}
// What a model answers for a fixed set of rows, to the last bit.
inline std::string SeaAnswers(int port, const std::string& model) {
  const Reply reply =
      ApiClient(port).Post(Str("/v2/models/", model, "/infer"), serve::Inputs({SeaInput(1'000'000, 50)}));
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.json["outputs"].dump();
}

}  // namespace freshet::cli
