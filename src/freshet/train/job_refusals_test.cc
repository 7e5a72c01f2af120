// What jobs cannot do is refused with its reason, by the names of options.

#include "train/job_testing.h"

namespace freshet::train {
namespace {

TEST_F(JobTest, LbfgsByWorkersRefusesWhatItsStepsCannotBeMadeWith) {
  job_.learning.optimizer = "lbfgs";
  job_.together.workers = 2;
  const auto refused = [&](const std::string& why, const std::function<void(Job&)>& change) {
    Job job = job_;
    change(job);
    const std::string text = Refused(job);
    EXPECT_TRUE(text.starts_with(why)) << text << "\ninstead of\n" << why;
  };
  for (const std::string kind : {"average", "groups", "gossip", "auto"})
    refused(Str("optimizer lbfgs does not go with strategy ", kind, ": a step is made from the rows of all"),
            [&](Job& job) { job.together.strategy.kind = kind; });
  refused("optimizer lbfgs does not go with codec int8", [](Job& job) { job.together.strategy.codec = "int8"; });
  refused("optimizer lbfgs does not go with layer-factors", [](Job& job) { job.together.strategy.factors = true; });
  refused("optimizer lbfgs does not go with exact", [](Job& job) { job.together.strategy.exact = true; });
  refused("optimizer lbfgs does not go with backup", [](Job& job) { job.together.strategy.backup = 1; });
  const auto server = [](auto change) {
    return [change](Job& job) {
      job.together.strategy.kind = "server";
      change(job.together.strategy);
    };
  };
  refused("optimizer lbfgs does not go with synchrony ssp:3", server([](auto& how) { how.synchrony = "ssp:3"; }));
  refused("optimizer lbfgs does not go with servers 1", server([](auto& how) { how.servers = 1; }));
  refused("optimizer lbfgs does not go with cache", [&](Job& job) { job.cache = world_.Path("rows"); });
  refused("optimizer lbfgs goes with neither holdout", [](Job& job) { job.holdout = 0.1; });
  refused("optimizer lbfgs goes with neither holdout", [](Job& job) { job.batch = 64; });
  refused("elastic does not go with optimizer lbfgs", [](Job& job) {
    job.together.elastic = "1:2";
    job.together.workers = 0;
  });
}

TEST_F(JobTest, GossipOfWorkersThatComeAndGoRefusesWhatItCannotKeep) {
  const auto refused = [&](const std::string& why, const std::function<void(Together&)>& change) {
    Job job = job_;
    job.together.elastic = "1:3";
    job.together.strategy.kind = "gossip";
    change(job.together);
    const std::string text = Refused(job);
    EXPECT_TRUE(text.starts_with(why)) << text << "\ninstead of\n" << why;
  };
  refused("elastic does not go with lossy and gossip", [](Together& how) { how.strategy.lossy = true; });
  refused("elastic does not go with evict and strategy gossip", [](Together& how) { how.evict = 3; });
  refused("elastic does not go with split bytes", [](Together& how) { how.split = "bytes"; });
  refused("neighbours: there is no way from rank 0 to rank 2", [](Together& how) { how.strategy.neighbours = "0-1"; });
}

TEST_F(JobTest, PartsOfAModelWithWorkersThatComeAndGoRefuseWhatTheyCannotKeep) {
  const auto refused = [&](const std::string& why, const std::function<void(Together&)>& change) {
    Job job = job_;
    job.together.elastic = "1:3";
    job.together.strategy.kind = "ring";
    change(job.together);
    const std::string text = Refused(job);
    EXPECT_TRUE(text.starts_with(why)) << text << "\ninstead of\n" << why;
  };
  refused("elastic does not go with evict and strategy ring", [](Together& how) { how.evict = 3; });
  refused("elastic does not go with copy-every 0 and strategy ring", [](Together& how) { how.copy_every = 0; });
  refused("elastic does not go with large-model and strategy ring", [](Together& how) { how.strategy.large = true; });
  refused("elastic does not go with pipeline stash", [](Together& how) { how.strategy.pipeline = "stash"; });
  refused("elastic does not go with strategy slices", [](Together& how) { how.strategy.kind = "slices"; });
  job_.learning.model = "linear";
  refused("elastic does not go with balance of columns", [](Together& how) { how.strategy.balance = true; });
}

TEST_F(JobTest, WhatMakesNoSenseIsRefusedByTheNamesOfOptions) {
  Job job = job_;
  job.learning.factors = 0;
  job.holdout = 2;
  EXPECT_EQ(Refused(job),
            "factors: found '0', expected a whole number from 1 to 4096\n"
            "holdout: found '2', expected a number from 0 to 0.9");
  job = job_;
  job.together.workers = 4;
  job.batch = 3;
  EXPECT_TRUE(Refused(job).starts_with("batch 3 has no row for some of 4 workers")) << Refused(job);
  job = job_;
  job.learning.model = "fm";
  job.learning.loss = "softmax";
  EXPECT_EQ(Refused(job), "model fm goes with logistic, hinge or squared loss");
}

}  // namespace
}  // namespace freshet::train
