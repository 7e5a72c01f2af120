// `freshet serve` as its operators meet it: what it trained it serves, it stops without losing anything, goes on where
// it stopped, and says what is wrong with its disk while it serves on.

#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "serve_testing.h"

namespace freshet::cli {
namespace {

namespace fs = std::filesystem;

class ServeTest : public testing::Test {
 protected:
  void Must(const std::vector<std::string>& arguments) {
    const Finished finished = Process(scratch_, arguments, {}).Wait();
    ASSERT_EQ(finished.code, 0) << Join(arguments, " ") << "\n" << finished.err;
  }
  void TrainSea() {
    Must({"data", "generate", "--kind", "sea", "--rows", "500", "-o", "sea.csv"});
    Must({"train", "sea.csv", "-o", "sea.model", "--quiet"});
  }
  static std::vector<std::string> Ids(const std::string& prefix, int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back(Str(prefix, i));
    return ids;
  }
  // Teaches the model `sea` rows under new ids; the status of the answer.
  int Teach(Server& server, const std::string& prefix, int count) {
    return server.Post("/v2/models/sea/learn", SeaLesson(base::Hash64(prefix) % 100'000, Ids(prefix, count))).status;
  }
  std::vector<std::string> Lines(const std::string& file) const {
    std::vector<std::string> lines;
    const std::string text = scratch_.Read(file);
    for (const std::string_view line : Split(text, '\n'))
      if (!line.empty()) lines.emplace_back(line);
    return lines;
  }
  std::string LastJournal(const std::string& model = "sea") const {
    std::string last;
    for (const auto& entry : fs::directory_iterator(scratch_ / ("state/" + model + "/journal")))
      if (entry.path().extension() == ".log") last = std::max(last, entry.path().string());
    return last;
  }
  static void FlipBit(const std::string& path, std::uint64_t byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(byte));
    const char changed = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(byte));
    file.put(changed);
  }
  static void ExpectMentions(const std::string& text, const std::string& piece) {
    EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
  }

  base::ScratchDirectory scratch_;
};

TEST_F(ServeTest, AnswersAsPredictDoesForEveryKindOfModel) {
  TrainSea();
  Must({"train", "sea.csv", "--model", "kmeans", "--clusters", "4", "-o", "clusters.model", "--quiet"});
  Must({"data", "generate", "--kind", "ratings", "--rows", "600", "--users", "20", "--items", "30", "-o", "r.dat"});
  Must({"train", "r.dat", "-k", "4", "-o", "ratings.model", "--quiet"});
  std::string table = "age,city,income,label\n", sparse;
  for (int i = 0; i < 300; ++i) {
    table += Str(20 + i % 41, i % 3 == 0 ? ",Rome," : ",Oslo,", i % 17, i % 3 == 0 ? ",yes\n" : ",no\n");
    sparse += Str(i % 2 == 0 ? "1 " : "-1 ", 1 + i % 5, ":1 ", 10 + i % 7, ":0.5\n");
  }
  scratch_.Write("table.csv", table);
  scratch_.Write("sparse.svm", sparse);
  Must({"train", "table.csv", "-o", "table.model", "--quiet"});
  Must({"train", "sparse.svm", "-o", "sparse.model", "--quiet"});
  Server server(scratch_, {"sea.model", "clusters.model", "ratings.model", "table.model", "sparse.model"});
  ASSERT_TRUE(server.up()) << server.Wait().err;

  // The first 20 rows of a data set, as text, column by column.
  const auto columns = [&](const std::string& file, const std::string& delimiter, bool header) {
    std::vector<Json> all;
    std::vector<std::string> lines = Lines(file);
    if (header) lines.erase(lines.begin());
    for (int r = 0; r < 20; ++r) {
      std::string line = lines[static_cast<std::size_t>(r)] + delimiter;
      for (std::size_t c = 0; !line.empty(); ++c) {
        const std::size_t end = line.find(delimiter);
        if (all.size() <= c) all.emplace_back();
        all[c].push_back(line.substr(0, end));
        line.erase(0, end + delimiter.size());
      }
    }
    return all;
  };
  const auto numbers = [](const Json& texts) {
    Json all;
    for (const Json& text : texts) all.push_back(std::stod(text.get<std::string>()));
    return all;
  };
  const auto expect = [&](const std::string& model, const std::string& data, std::vector<Json> inputs) {
    SCOPED_TRACE(model);
    Must({"predict", "-i", model + ".model", data, "-o", "predicted"});
    const Reply reply = server.Post(Str("/v2/models/", model, "/infer"), serve::Inputs(std::move(inputs)));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::vector<std::string> predicted = Lines("predicted");
    for (std::size_t r = 0; r < 20; ++r)
      EXPECT_EQ(reply.json["outputs"][0]["data"][r].get<float>(), std::stof(predicted[r])) << "row " << r;
  };
  using serve::Tensor;
  const auto sea = columns("sea.csv", ",", true);
  const std::vector<Json> x = {Tensor("x1", "FP64", numbers(sea[0])), Tensor("x2", "FP64", numbers(sea[1])),
                               Tensor("x3", "FP64", numbers(sea[2]))};
  expect("sea", "sea.csv", x);
  expect("clusters", "sea.csv", x);
  const auto people = columns("table.csv", ",", true);
  expect("table", "table.csv",
         {Tensor("age", "FP64", numbers(people[0])), Tensor("city", "BYTES", people[1]),
          Tensor("income", "FP32", numbers(people[2]))});
  const auto ratings = columns("r.dat", "::", false);
  expect("ratings", "r.dat", {Tensor("user", "BYTES", ratings[0]), Tensor("item", "BYTES", ratings[1])});
  Json starts = {0}, indices, values;
  for (int i = 0; i < 20; ++i) {
    indices.push_back(1 + i % 5), indices.push_back(10 + i % 7);
    values.push_back(1), values.push_back(0.5);
    starts.push_back(indices.size());
  }
  expect("sparse", "sparse.svm",
         {Tensor("indptr", "INT64", starts), Tensor("indices", "INT64", indices), Tensor("values", "FP32", values)});
  EXPECT_EQ(server.Stop().code, 0);
}

TEST_F(ServeTest, GoesOnWhereItStoppedBitForBit) {
  TrainSea();
  for (const std::string method : {"baseline+", "continuous", "velox"}) {
    SCOPED_TRACE(method);
    const std::vector<std::string> arguments = {
        "sea.model",       "--state", "state-" + method,  "--method", method, "--buffer", "200",
        "--retrain-every", "400",     "--retrain-epochs", "2"};
    Json before;
    std::string answers;
    {
      Server server(scratch_, arguments);
      ASSERT_TRUE(server.up()) << server.Wait().err;
      for (int i = 0; i < 10; ++i) ASSERT_EQ(Teach(server, Str("batch ", i, "/"), 100), 200);
      before = server.SettledStats("sea", 1000);
      answers = SeaAnswers(server.port(), "sea");
      const Finished finished = server.Stop();
      EXPECT_EQ(finished.code, 0) << finished.err;
    }
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    EXPECT_EQ(SeaAnswers(server.port(), "sea"), answers);
    const Json after = server.Stats("sea");
    EXPECT_EQ(after["quality"], before["quality"]);
    EXPECT_EQ(after["learning"]["observations"], 1000);
    EXPECT_EQ(after["training"]["iterations"], before["training"]["iterations"]);
  }
}

TEST_F(ServeTest, DrawsFromWhatItsModelWasTrainedOn) {
  TrainSea();
  const std::vector<std::string> arguments = {"sea.model", "--state", "s", "--history", "sea.csv"};
  std::string answers;
  {
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    const Json learning = server.Stats("sea")["learning"];
    EXPECT_GT(learning["history"], 0) << learning;
    EXPECT_EQ(learning["learned"], 0);
    answers = SeaAnswers(server.port(), "sea");
    EXPECT_EQ(server.Stop().code, 0);
  }
  Server server(scratch_, arguments);  // which does not read it again
  ASSERT_TRUE(server.up()) << server.Wait().err;
  EXPECT_EQ(SeaAnswers(server.port(), "sea"), answers);
  ASSERT_EQ(server.Post("/v2/models/sea/iterate", Json::object()).status, 200);
  EXPECT_TRUE(serve::Eventually([&] { return server.Stats("sea")["training"]["iterations"] == 1; }));
  EXPECT_NE(SeaAnswers(server.port(), "sea"), answers);
  EXPECT_EQ(server.Stop().code, 0);
  const Finished lost =
      Process(scratch_, {"serve", "sea.model", "--state", "t", "--listen", "127.0.0.1:0", "--history", "no.csv"}, {})
          .Wait();
  EXPECT_NE(lost.code, 0);
  EXPECT_NE(lost.err.find("no.csv"), std::string::npos) << lost.err;
}

TEST_F(ServeTest, RemembersNamesItMetWhileServing) {
  std::string table = "age,city,label\n";
  for (int i = 0; i < 100; ++i)
    table += Str(20 + i % 41, i % 3 == 0 ? ",Rome," : ",Oslo,", i % 3 == 0 ? "yes\n" : "no\n");
  scratch_.Write("table.csv", table);
  Must({"train", "table.csv", "-o", "table.model", "--quiet"});
  using serve::Tensor;
  const auto ask = [](Server& server) {
    return server
        .Post("/v2/models/table/infer",
              serve::Inputs({Tensor("age", "FP32", {30, 30, 30}), Tensor("city", "BYTES", {"Lima", "Rome", "Cairo"})}))
        .json["outputs"];
  };
  Json answers;
  {
    Server server(scratch_, {"table.model"});
    ASSERT_TRUE(server.up()) << server.Wait().err;
    for (int i = 0; i < 50; ++i)
      ASSERT_EQ(server
                    .Post("/v2/models/table/learn",
                          serve::Inputs({Tensor("age", "FP32", {30, 31}), Tensor("city", "BYTES", {"Lima", "Cairo"}),
                                         Tensor("labels", "BYTES", {"yes", "no"})}))
                    .status,
                200);
    server.SettledStats("table", 100);
    answers = ask(server);
    EXPECT_EQ(answers[1]["data"], Json({"yes", "yes", "no"}));
    server.Stop(SIGKILL);
  }
  Server server(scratch_, {"table.model"});
  ASSERT_TRUE(server.up()) << server.Wait().err;
  EXPECT_EQ(ask(server), answers);
}

TEST_F(ServeTest, AnswersEverythingItTookWhenItIsToldToStop) {
  std::atomic<int> acknowledged{0}, torn{0};
  {
    Server server(scratch_, {"--cold", "sea", "--features", "3", "--state", "state"});
    ASSERT_TRUE(server.up()) << server.Wait().err;
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c) {
      clients.emplace_back([&, c] {
        ApiClient client(server.port());
        for (int n = 0;; ++n) {
          const Json body = SeaLesson(static_cast<std::uint64_t>(n), {Str(c, "/", n)});
          const Reply reply = client.Post("/v2/models/sea/learn", body);
          if (reply.status == 200) ++acknowledged;
          if (reply.status != 0 && !reply.json.is_object()) ++torn;
          if (reply.status != 200) return;
        }
      });
    }
    EXPECT_TRUE(serve::Eventually([&] { return acknowledged > 200; }));
    const Finished finished = server.Stop();
    EXPECT_EQ(finished.code, 0) << finished.err;
    for (std::thread& client : clients) client.join();
  }
  EXPECT_EQ(torn, 0);
  Server server(scratch_, {"--cold", "sea", "--features", "3", "--state", "state"});
  ASSERT_TRUE(server.up()) << server.Wait().err;
  const int kept = server.Stats("sea")["learning"]["observations"];
  EXPECT_GE(kept, acknowledged);
  EXPECT_LE(kept, acknowledged + 4);  // taken from the socket, and the client did not wait for the answer
}

TEST_F(ServeTest, TellsBalancersBeforeItCloses) {
  Server server(scratch_, {"--cold", "sea", "--features", "3", "--drain", "30"});
  ASSERT_TRUE(server.up()) << server.Wait().err;
  ApiClient client(server.port());
  EXPECT_EQ(client.Get("/v2/health/ready").status, 200);
  server.Signal(SIGTERM);
  EXPECT_TRUE(serve::Eventually([&] { return client.Get("/v2/health/ready").status == 503; }));
  EXPECT_EQ(client.Get("/v2/health/live").status, 200);
  EXPECT_EQ(Teach(server, "late", 1), 200);  // on a new connection
  EXPECT_EQ(server.Stop().code, 143);        // the second time means now
}

TEST_F(ServeTest, ASecondServerOnTheSameStateIsTurnedAway) {
  const std::vector<std::string> arguments = {"--cold", "sea", "--features", "3", "--state", "state"};
  Server server(scratch_, arguments);
  ASSERT_TRUE(server.up()) << server.Wait().err;
  Server second(scratch_, arguments);
  EXPECT_FALSE(second.up());
  const Finished finished = second.Wait();
  EXPECT_EQ(finished.code, 1);
  ExpectMentions(finished.err, "another process");
  EXPECT_EQ(Teach(server, "a", 1), 200);
}

TEST_F(ServeTest, RefusesToBeOpenToTheNetworkByAccident) {
  const Finished finished =
      Process(scratch_, {"serve", "--cold", "sea", "--features", "3", "--listen", "0.0.0.0:0"}, {}).Wait();
  EXPECT_EQ(finished.code, 2);
  ExpectMentions(finished.err, "insecure");
}

TEST_F(ServeTest, AStateThatCannotBeWrittenIsSaidAtOnce) {
  scratch_.Write("file", "");
  const Finished finished =
      Process(scratch_, {"serve", "--cold", "sea", "--features", "3", "--state", "file/state"}, {}).Wait();
  EXPECT_EQ(finished.code, 1);
  ExpectMentions(finished.err, "file/state");
  EXPECT_EQ(finished.ErrorLines().size(), 1u) << finished.err;
}

TEST_F(ServeTest, ATornTailCostsOnlyWhatWasTorn) {
  const std::vector<std::string> arguments = {"--cold", "sea", "--features", "3", "--state", "state", "--buffer", "0"};
  for (const int bytes : {1, 7, 33, 100, 1000}) {
    SCOPED_TRACE(bytes);
    fs::remove_all(scratch_ / "state");
    {
      Server server(scratch_, arguments);
      ASSERT_TRUE(server.up()) << server.Wait().err;
      ASSERT_EQ(Teach(server, "a/", 100), 200);
      server.Stop(SIGKILL);
    }
    fs::resize_file(LastJournal(), fs::file_size(LastJournal()) - static_cast<std::uintmax_t>(bytes));
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    const int kept = server.Stats("sea")["learning"]["observations"];
    EXPECT_LT(kept, 100);
    EXPECT_GE(kept, 100 - 1 - bytes / 40);
    const Reply again = server.Post("/v2/models/sea/learn", SeaLesson(0, Ids("a/", 100)));
    EXPECT_EQ(again.json["accepted"], 100 - kept);
    EXPECT_EQ(again.json["duplicates"], kept);
    server.SettledStats("sea", 100);
  }
}

TEST_F(ServeTest, AFlippedBitInTheJournalIsFoundNamedAndPassedOver) {
  const std::vector<std::string> arguments = {"--cold", "sea", "--features", "3", "--state", "state", "--buffer", "0"};
  {
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    for (int i = 0; i < 5; ++i) ASSERT_EQ(Teach(server, Str("b", i, "/"), 50), 200);
    server.Stop(SIGKILL);
  }
  fs::copy(scratch_ / "state", scratch_ / "whole", fs::copy_options::recursive);
  const std::uint64_t size = fs::file_size(LastJournal());
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::uint64_t byte = 32 + base::Random(29, seed).Below(size - 200);  // neither the head nor the tail
    SCOPED_TRACE(Str("byte ", byte, " of ", size));
    fs::remove_all(scratch_ / "state");
    fs::copy(scratch_ / "whole", scratch_ / "state", fs::copy_options::recursive);
    FlipBit(LastJournal(), byte);
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    const Json learning = server.Stats("sea")["learning"];
    EXPECT_EQ(learning["damaged_places"], 1) << learning;
    SeaAnswers(server.port(), "sea");
    int lost = 0;  // and learned when they are sent again, since their ids are not known
    for (int i = 0; i < 5; ++i)
      lost += server.Post("/v2/models/sea/learn", SeaLesson(0, Ids(Str("b", i, "/"), 50))).json["accepted"].get<int>();
    EXPECT_TRUE(lost == 1 || lost == 2) << lost;
    const Finished finished = server.Stop();
    EXPECT_EQ(finished.code, 0);
    ExpectMentions(finished.err, "journal damaged");
    ExpectMentions(finished.err, fs::path(LastJournal()).filename().string());
  }
}

TEST_F(ServeTest, ADamagedVersionIsPassedOverAndRebuiltFromTheLog) {
  const std::vector<std::string> arguments = {"--cold",  "sea",   "--features", "3",
                                              "--state", "state", "--buffer",   "100"};
  std::string answers;
  {
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    for (int i = 0; i < 6; ++i) ASSERT_EQ(Teach(server, Str("b", i, "/"), 50), 200);
    server.SettledStats("sea", 300);
    answers = SeaAnswers(server.port(), "sea");
    EXPECT_EQ(server.Stop().code, 0);
  }
  fs::copy(scratch_ / "state", scratch_ / "whole", fs::copy_options::recursive);
  for (const std::string damaged : {".model", ".vitals"}) {
    SCOPED_TRACE(damaged);
    fs::remove_all(scratch_ / "state");
    fs::copy(scratch_ / "whole", scratch_ / "state", fs::copy_options::recursive);
    int count = 0;
    for (const auto& entry : fs::directory_iterator(scratch_ / "state/sea/versions")) {
      if (entry.path().extension() != damaged || entry.path().filename().string().starts_with("00000000000000000000."))
        continue;
      FlipBit(entry.path().string(), fs::file_size(entry.path()) / 2);
      ++count;
    }
    ASSERT_GT(count, 0);
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    EXPECT_EQ(SeaAnswers(server.port(), "sea"), answers);
    EXPECT_EQ(server.Stats("sea")["learning"]["observations"], 300);
    ExpectMentions(server.Stop().err, "version damaged");
  }
}

// A limit on the size of files stands in for a full disk; the server is started within it.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*const handler_)(int);
  rlimit before_{};
};

TEST_F(ServeTest, AFullDiskStopsTheLearningAndNotTheServing) {
  const std::vector<std::string> arguments = {"--cold", "sea", "--features", "3", "--state", "state", "--buffer", "0"};
  std::optional<Server> server;
  {
    const FileLimit full(40'000);
    server.emplace(scratch_, arguments);
  }
  ASSERT_TRUE(server->up()) << server->Wait().err;
  int taken = 0, status = 0;
  for (; taken < 100; ++taken) {
    status = Teach(*server, Str(taken, "/"), 20);
    if (status != 200) break;
  }
  ASSERT_EQ(status, 503);
  ASSERT_GT(taken, 5);
  const std::uint64_t rows = 20 * static_cast<std::uint64_t>(taken);
  EXPECT_NE(server->SettledStats("sea", rows)["learning"]["problem"], "");
  const std::string answers = SeaAnswers(server->port(), "sea");
  for (int i = 0; i < 20; ++i) {
    const Reply reply = server->Post("/v2/models/sea/learn", SeaLesson(1, Ids("refused", 20)));
    EXPECT_EQ(reply.status, 503);
    ExpectMentions(reply.json["error"], "the disk does not take observations at the moment; nothing was kept");
    EXPECT_EQ(reply.body.find(scratch_.path()), std::string::npos);
  }
  EXPECT_EQ(SeaAnswers(server->port(), "sea"), answers);

  rlimit spacious{};
  getrlimit(RLIMIT_FSIZE, &spacious);
  prlimit(server->pid(), RLIMIT_FSIZE, &spacious, nullptr);
  EXPECT_EQ(Teach(*server, Str(taken, "/"), 20), 200);
  server->SettledStats("sea", rows + 20);
  server->Stop(SIGKILL);
  server.emplace(scratch_, arguments);
  ASSERT_TRUE(server->up()) << server->Wait().err;
  EXPECT_EQ(server->Stats("sea")["learning"]["observations"], rows + 20);
  EXPECT_EQ(server->Stats("sea")["learning"]["damaged_places"], 0);
}

}  // namespace
}  // namespace freshet::cli
