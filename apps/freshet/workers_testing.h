#pragma once

#include <sys/stat.h>

#include <memory>

#include "process_testing.h"

namespace freshet::cli {

class WorkersTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;
  using Fleet = std::vector<std::unique_ptr<Process>>;

  Finished Run(const Arguments& arguments, const Surroundings& around = {}) {
    return Process(scratch_, arguments, around).Wait();
  }
  void Generate(const std::string& rows) {
    ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", rows, "-o", "sea.csv"}).code, 0);
  }
  // N processes that are told their place by variables, as a launcher would.
  Fleet Start(int count, const Arguments& arguments) {
    return StartEach(std::vector<Arguments>(static_cast<std::size_t>(count), arguments));
  }
  // The same with a command for each, and where its standard input comes from.
  Fleet StartEach(const std::vector<Arguments>& commands, const std::vector<std::string>& inputs = {}) {
    const std::size_t count = commands.size();
    const std::string token = scratch_.Write("token", std::string(32, 'k')), port = Str(FreePort());
    chmod(token.c_str(), 0600);
    Fleet fleet;
    for (std::size_t rank = 0; rank < count; ++rank) {
      Surroundings around;
      if (!inputs.empty()) around.input = inputs[rank];
      around.environment = {{"FRESHET_RANK", Str(rank)},
                            {"FRESHET_WORLD", Str(count)},
                            {"FRESHET_LOCAL_RANK", Str(rank)},
                            {"FRESHET_LOCAL_WORLD", Str(count)},
                            {"FRESHET_RENDEZVOUS", Str("127.0.0.1:", port)},
                            {"FRESHET_JOB_ID", "test"},
                            {"FRESHET_TOKEN_FILE", token}};
      fleet.push_back(std::make_unique<Process>(scratch_, commands[rank], around));
    }
    return fleet;
  }
  std::vector<Finished> Wait(Fleet& fleet) {
    std::vector<Finished> all;
    for (auto& process : fleet) all.push_back(process->Wait());
    return all;
  }
  bool Exists(const std::string& name) const { return access((scratch_ / name).c_str(), F_OK) == 0; }

  base::ScratchDirectory scratch_;
};

}  // namespace freshet::cli
