// The server is killed at any moment, again and again. What it acknowledged it knows afterwards, once; and the model
// after the recovery is the one that a replay of the log from its first record gives, bit for bit.
//
// FRESHET_CRASH_LOOPS says how often (3).

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "serve_testing.h"

namespace freshet::cli {
namespace {

// Rows that a client sent under ids of their own.
struct Lesson {
  std::string model;
  std::uint64_t first;
  std::vector<std::string> ids;
  bool acknowledged = false;

  Json Body() const {
    if (model == "sea") return SeaLesson(first, ids);
    Json users, items, labels;
    for (std::uint64_t n = first; n < first + ids.size(); ++n) {
      users.push_back(Str("u", n / 13 % 1000));  // new ones all the time
      items.push_back(Str("i", n % 37));
      labels.push_back(1.0 + static_cast<double>(n % 37 % 5));
    }
    return serve::Inputs({serve::Tensor("user", "BYTES", users), serve::Tensor("item", "BYTES", items),
                          serve::Tensor("labels", "FP32", labels), serve::Tensor("ids", "BYTES", ids)});
  }
};

// A label for a row that was predicted under this id.
struct Answered {
  std::string id;
  bool acknowledged = false;
};

class CrashLoop : public testing::Test {
 protected:
  static constexpr int kTeachers = 3;
  static constexpr int kLoopsOfAState = 25;

  void SetUp() override {
    const auto must = [&](const std::vector<std::string>& arguments) {
      ASSERT_EQ(Process(scratch_, arguments, {}).Wait().code, 0) << Join(arguments, " ");
    };
    must({"data", "generate", "--kind", "ratings", "--rows", "500", "--users", "20", "--items", "37", "-o", "r.dat"});
    must({"train", "r.dat", "-k", "4", "-o", "r.model", "--quiet"});
  }
  // Iterations take a bounded sample, so that replaying them all does not come to cost more with every loop.
  std::vector<std::string> Arguments(const std::string& state, int loop) const {
    return {"ratings=r.model",
            "--cold",
            "sea",
            "--features",
            "3",
            "--state",
            state,
            "--buffer",
            "300",
            "--sample-rows",
            "300",
            "--version-rows",
            "700",
            "--versions",
            "3",
            "--durability",
            loop % 2 == 0 ? "everysec" : "always"};
  }

  // Sends rows until the server is gone.
  void Teach(int port, int loop, int teacher, std::vector<Lesson>& sent) {
    ApiClient client(port);
    base::Random random(17, static_cast<std::uint64_t>(loop * kTeachers + teacher));
    for (std::uint64_t n = 0;; ++n) {
      Lesson lesson{teacher == 0 ? "ratings" : "sea", 1000 * random.Below(1000), {}, false};
      const std::uint64_t rows = 1 + random.Below(20);
      for (std::uint64_t r = 0; r < rows; ++r) lesson.ids.push_back(Str(loop, "/", teacher, "/", n, "/", r));
      const Reply reply = client.Post(Str("/v2/models/", lesson.model, "/learn"), lesson.Body());
      lesson.acknowledged = reply.status == 200;
      sent.push_back(lesson);
      if (reply.status == 0) return;
      ASSERT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ(reply.json["accepted"], rows) << reply.body;
    }
  }
  // Predicts under an id and tells the label later, until the server is gone.
  void Answer(int port, int loop, std::vector<Answered>& sent) {
    ApiClient client(port);
    for (std::uint64_t n = 0;; ++n) {
      Json body = serve::Inputs({SeaInput(n, 1)});
      body["id"] = Str("p", loop, "/", n);
      if (client.Post("/v2/models/sea/infer", body).status != 200) return;
      const Reply reply = client.Post("/v2/models/sea/feedback", Json({{"id", body["id"]}, {"label", n % 2}}));
      sent.push_back({body["id"], reply.status == 200});
      if (reply.status == 0) return;
      ASSERT_EQ(reply.json["result"], "accepted") << reply.body;
    }
  }

  // Loads a server from several sides and kills it in the middle of that.
  void LoadAndKill(Server& server, int loop, std::vector<Lesson>& lessons, std::vector<Answered>& answers) {
    std::vector<std::vector<Lesson>> sent(kTeachers);
    std::vector<std::thread> clients;
    for (int t = 0; t < kTeachers; ++t) clients.emplace_back([&, t] { Teach(server.port(), loop, t, sent[t]); });
    clients.emplace_back([&] { Answer(server.port(), loop, answers); });
    base::Random random(19, static_cast<std::uint64_t>(loop));
    usleep(static_cast<useconds_t>(20'000 + random.Below(250'000)));
    server.Stop(SIGKILL);
    for (std::thread& client : clients) client.join();
    for (auto& part : sent) lessons.insert(lessons.end(), part.begin(), part.end());
  }

  // Sends everything once more: what was acknowledged is known, the rest is learned now; all of it counts once.
  void SendAgain(Server& server, const std::vector<Lesson>& lessons, const std::vector<Answered>& answers) {
    ApiClient client(server.port());
    for (const Lesson& lesson : lessons) {
      const Reply reply = client.Post(Str("/v2/models/", lesson.model, "/learn"), lesson.Body());
      ASSERT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ(reply.json["accepted"].get<std::size_t>() + reply.json["duplicates"].get<std::size_t>(),
                lesson.ids.size());
      EXPECT_TRUE(!lesson.acknowledged || reply.json["accepted"] == 0) << "lost: " << lesson.ids[0] << reply.body;
      expected_[lesson.model] += lesson.ids.size();
    }
    for (const Answered& answer : answers) {
      const Reply reply = client.Post("/v2/models/sea/feedback", Json({{"id", answer.id}, {"label", 1}}));
      ASSERT_EQ(reply.status, 200) << reply.body;
      EXPECT_TRUE(!answer.acknowledged || reply.json["result"] == "duplicate") << "lost: " << answer.id;
      // The prediction itself may not have come to the log: then there is nothing to learn.
      if (reply.json["result"] != "expired") ++expected_["sea"];
    }
    for (const auto& [model, rows] : expected_) {
      const Json stats = server.SettledStats(model, rows);
      EXPECT_EQ(stats["learning"]["damaged_places"], 0) << stats;
      EXPECT_EQ(stats["learning"]["problem"], "") << stats;
    }
  }

  // What two servers must have in common to be the same: numbers, and answers to the last bit.
  Json Summary(Server& server) {
    Json all;
    for (const std::string model : {"sea", "ratings"}) {
      const Json stats = server.SettledStats(model, expected_[model]);
      for (const char* const key : {"observations", "learned", "history", "buffered", "sequence", "sampling_rate"})
        all[model][key] = stats["learning"][key];
      all[model]["iterations"] = stats["training"]["iterations"];
      all[model]["quality"] = stats["quality"];
    }
    all["sea"]["answers"] = SeaAnswers(server.port(), "sea");
    Lesson rows{"ratings", 5, std::vector<std::string>(200, "x")};
    Json body = rows.Body();
    body["inputs"].erase(body["inputs"].begin() + 2, body["inputs"].end());
    all["ratings"]["answers"] = server.Post("/v2/models/ratings/infer", body).json["outputs"].dump();
    return all;
  }

  // A copy of the state whose only version is the one it began with: starting on it replays the whole log.
  std::string CopyWithoutVersions() {
    namespace fs = std::filesystem;
    fs::remove_all(scratch_ / "replay");
    fs::copy(scratch_ / "state", scratch_ / "replay", fs::copy_options::recursive);
    for (const std::string model : {"sea", "ratings"})
      for (const auto& entry : fs::directory_iterator(scratch_ / ("replay/" + model + "/versions")))
        if (!entry.path().filename().string().starts_with("00000000000000000000.")) fs::remove(entry.path());
    return "replay";
  }

  base::ScratchDirectory scratch_;
  std::map<std::string, std::uint64_t> expected_;  // observations of each model, in the state
};

TEST_F(CrashLoop, LosesNothingThatWasAcknowledgedAndLearnsNothingTwice) {
  const char* const wanted = std::getenv("FRESHET_CRASH_LOOPS");
  const int loops = wanted != nullptr ? std::atoi(wanted) : 3;
  double slowest = 0;
  std::uint64_t acknowledged = 0;
  for (int loop = 0; loop < loops && !HasFailure(); ++loop) {
    SCOPED_TRACE(Str("loop ", loop));
    // All that was ever learned is replayed in every loop: now and then there is nothing yet.
    if (loop % kLoopsOfAState == 0) {
      std::filesystem::remove_all(scratch_ / "state");
      expected_.clear();
    }
    std::vector<Lesson> lessons;
    std::vector<Answered> answers;
    {
      Server server(scratch_, Arguments("state", loop));
      ASSERT_TRUE(server.up()) << server.Wait().err;
      slowest = std::max(slowest, server.ready_seconds());
      LoadAndKill(server, loop, lessons, answers);
    }
    if (loop % 4 == 3) {  // and killed again while it recovers
      Process recovering(scratch_, {"serve", "ratings=r.model", "--listen", "127.0.0.1:0", "--state", "state"}, {});
      usleep(static_cast<useconds_t>(base::Random(23, static_cast<std::uint64_t>(loop)).Below(60'000)));
    }
    Server server(scratch_, Arguments("state", loop));
    ASSERT_TRUE(server.up()) << server.Wait().err;
    slowest = std::max(slowest, server.ready_seconds());
    SendAgain(server, lessons, answers);
    server.Stop(SIGKILL);
    for (const Lesson& lesson : lessons) acknowledged += lesson.acknowledged ? lesson.ids.size() : 0;

    Server resumed(scratch_, Arguments("state", loop)), replayed(scratch_, Arguments(CopyWithoutVersions(), loop));
    ASSERT_TRUE(resumed.up()) << resumed.Wait().err;
    ASSERT_TRUE(replayed.up()) << replayed.Wait().err;
    const Json one = Summary(resumed), other = Summary(replayed);
    EXPECT_EQ(one, other) << Json::diff(one, other).dump(2);
    resumed.Stop(SIGKILL);
  }
  std::cout << "crash loops: " << loops << ", acknowledged rows: " << acknowledged << ", slowest start: " << slowest
            << " s\n";
  EXPECT_GT(acknowledged, 0u);
}

}  // namespace
}  // namespace freshet::cli
