// The calls of the server from end to end: a real socket, real threads, a real directory.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "base/random.h"
#include "model/network/description.h"
#include "model/network/zoo.h"
#include "serve/api_testing.h"

namespace freshet::serve {
namespace {

// A kind of model, and a made-up stream of rows that it can learn.
struct Kind {
  std::string name;
  data::Description description;
  model::ModelConfig config;
  std::function<std::vector<Json>(std::vector<std::uint64_t> rows)> inputs;  // of rows by their number
  std::function<Json(std::uint64_t row)> label;                              // null: it has none
};

double Noise(std::uint64_t row, std::uint64_t stream) { return base::Random(stream, row).Normal(); }

template <class Value>
Json Each(const std::vector<std::uint64_t>& rows, Value value) {
  Json all = Json::array();
  for (const std::uint64_t row : rows) all.push_back(value(row));
  return all;
}

Json Points(const std::vector<std::uint64_t>& rows, double apart) {
  std::vector<std::vector<double>> points;
  for (const std::uint64_t n : rows)
    points.push_back({Noise(n, 1) + (n % 2 == 0 ? apart : 0), Noise(n, 2), Noise(n, 3) - (n % 2 == 0 ? 0 : apart)});
  return Matrix(points);
}

// A perceptron for the points of `dense`.
Kind NetworkOf(const std::string& name, std::int64_t hidden) {
  const data::Description dense = DenseInput(3, {"no", "yes"});
  model::ModelConfig config = LinearFor(dense);
  config.kind = "network";
  config.network = ToToml(model::network::MakeZoo("mlp", {3}, 1, {.hidden = hidden}).value());
  return {name, dense, config, [](auto rows) { return std::vector{Points(rows, 3)}; },
          [](std::uint64_t n) { return n % 2 == 0 ? "yes" : "no"; }};
}

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds;
  const data::Description dense = DenseInput(3, {"no", "yes"});
  kinds.push_back({"dense", dense, LinearFor(dense), [](auto rows) { return std::vector{Points(rows, 3)}; },
                   [](std::uint64_t n) { return n % 2 == 0 ? "yes" : "no"; }});
  kinds.push_back({"sparse", SparseInput(), LinearFor(SparseInput()),
                   [](auto rows) {
                     Json starts = {0}, indices = Json::array(), values = Json::array();
                     for (const std::uint64_t n : rows) {
                       for (const std::uint64_t index : {1 + n % 10, 20 + n % 7}) indices.push_back(index);
                       values.push_back(1), values.push_back(0.5);
                       starts.push_back(indices.size());
                     }
                     return std::vector{Tensor("indptr", "INT64", starts), Tensor("indices", "INT64", indices),
                                        Tensor("values", "FP32", values)};
                   },
                   [](std::uint64_t n) { return n % 10 < 5 ? 1 : -1; }});
  kinds.push_back({"table", TableInput(), LinearFor(TableInput()),
                   [](auto rows) {
                     const char* const cities[] = {"Rome", "Oslo", "Quito", "Bern"};
                     return std::vector{
                         Tensor("age", "FP32", Each(rows, [](std::uint64_t n) { return 40 + 10 * Noise(n, 4); })),
                         Tensor("city", "BYTES", Each(rows, [&](std::uint64_t n) { return cities[n % 4]; })),
                         Tensor("income", "FP64", Each(rows, [](std::uint64_t n) { return Noise(n, 5); }))};
                   },
                   [](std::uint64_t n) { return n % 4 < 2 ? "yes" : "no"; }});
  kinds.push_back(
      {"ratings", RatingsInput(), FactorizationConfig(),
       [](auto rows) {
         const auto user = [](std::uint64_t n) { return Str("u", n % 7); };
         const auto item = [](std::uint64_t n) { return Str("i", n % 5); };
         return std::vector{Tensor("user", "BYTES", Each(rows, user)), Tensor("item", "BYTES", Each(rows, item))};
       },
       [](std::uint64_t n) { return 1.0 + static_cast<double>(n % 5); }});
  model::ModelConfig clusters = ClustersFor(DenseInput(3, {}));
  clusters.clusters = 2;
  kinds.push_back(
      {"clusters", DenseInput(3, {}), clusters, [](auto rows) { return std::vector{Points(rows, 50)}; }, nullptr});
  kinds.push_back(NetworkOf("network", 8));
  kinds.push_back(NetworkOf("wide", 24));
  return kinds;
}

std::vector<std::uint64_t> Range(std::uint64_t first, std::uint64_t end) {
  std::vector<std::uint64_t> rows;
  for (std::uint64_t n = first; n < end; ++n) rows.push_back(n);
  return rows;
}

Json InferBody(const Kind& kind, const std::vector<std::uint64_t>& rows) { return Inputs(kind.inputs(rows)); }

Json LearnBody(const Kind& kind, const std::vector<std::uint64_t>& rows, bool ids = false) {
  std::vector<Json> tensors = kind.inputs(rows);
  if (kind.label) {
    const Json labels = Each(rows, kind.label);
    tensors.push_back(Tensor("labels", labels[0].is_string() ? "BYTES" : "FP32", labels));
  }
  if (ids) tensors.push_back(Tensor("ids", "BYTES", Each(rows, [](std::uint64_t n) { return Str("row ", n); })));
  return Inputs(std::move(tensors));
}

class ApiTest : public testing::Test {
 protected:
  deploy::Deployment& Serve(const std::string& name, const Kind& kind, const Change& change = nullptr) {
    return server_.Add(name, kind.description, kind.config, change);
  }
  void ServeAll(const Change& change = nullptr) {
    for (const Kind& kind : kinds_) Serve(kind.name, kind, change);
    Start();
  }
  void Start() {
    server_.Start();
    client_ = std::make_unique<ApiClient>(server_.port());
  }
  static std::string Path(const std::string& model, const std::string& call) {
    return Str("/v2/models/", model, "/", call);
  }
  Reply Must(const std::string& model, const std::string& call, const Json& body) {
    Reply reply = client_->Post(Path(model, call), body);
    EXPECT_EQ(reply.status, 200) << model << " " << call << ": " << reply.body;
    if (reply.json.contains("sequence"))
      acknowledged_[model] = std::max<std::uint64_t>(acknowledged_[model], reply.json["sequence"]);
    return reply;
  }
  // The answer for these rows, once everything that was acknowledged can be seen: that comes a moment later.
  Json Predict(const std::string& model, const Kind& kind, const std::vector<std::uint64_t>& rows) {
    Reply reply;
    EXPECT_TRUE(Eventually([&] {
      reply = Must(model, "infer", InferBody(kind, rows));
      return reply.status != 200 || std::stoull(reply.json["model_version"].get<std::string>()) >= acknowledged_[model];
    }));
    return reply.json["outputs"];
  }
  Json Predict(const std::string& model, const Kind& kind) { return Predict(model, kind, Range(1000, 1040)); }
  // Whether a number of the statistics comes to be this; they too are a moment behind what was acknowledged.
  testing::AssertionResult Comes(const std::string& model, const std::string& pointer, const Json& wanted) {
    Json found;
    const bool came = Eventually([&] {
      found = client_->Get(Path(model, "stats")).json.value(Json::json_pointer(pointer), Json());
      return found == wanted;
    });
    return (came ? testing::AssertionSuccess() : testing::AssertionFailure()) << pointer << " is " << found;
  }

  const std::vector<Kind> kinds_ = Kinds();
  const Kind& dense_ = kinds_[0];
  const base::ScratchDirectory datasets_;
  const std::string datasets_root_ = std::filesystem::canonical(datasets_.path()).string();
  ApiServer server_{{datasets_root_}};
  std::unique_ptr<ApiClient> client_;
  std::map<std::string, std::uint64_t> acknowledged_;  // the last sequence of each model
};

TEST_F(ApiTest, SaysWhatItIsAndWhatItServes) {
  ServeAll();
  EXPECT_EQ(client_->Get("/v2").json["name"], "freshet");
  EXPECT_EQ(client_->Get("/v2/health/live").json, Json({{"live", true}}));
  EXPECT_EQ(client_->Get("/v2/health/ready").json["ready"], true);
  EXPECT_EQ(client_->Get("/v2/models").json["models"].size(), kinds_.size());
  for (const Kind& kind : kinds_) {
    SCOPED_TRACE(kind.name);
    const Json metadata = client_->Get("/v2/models/" + kind.name).json;
    EXPECT_EQ(metadata["name"], kind.name);
    EXPECT_EQ(metadata["platform"], "freshet_" + kind.config.kind);
    EXPECT_EQ(metadata["versions"], Json({"0"}));
    EXPECT_EQ(metadata["inputs"].size(), kind.inputs({0}).size());
    EXPECT_EQ(client_->Get("/v2/models/" + kind.name + "/versions/0").json["inputs"], metadata["inputs"]);
    EXPECT_EQ(client_->Get(Path(kind.name, "ready")).json["ready"], true);
    EXPECT_EQ(client_->Get(Path(kind.name, "stats")).json["kind"], kind.config.kind);
  }
  const Reply page = client_->Get("/");
  EXPECT_NE(page.head.find("Content-Type: text/html"), std::string::npos);
  EXPECT_NE(page.head.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  const Reply metrics = client_->Get("/metrics");
  EXPECT_NE(metrics.body.find("freshet_predictions_total{model=\"dense\"} 0"), std::string::npos);
  EXPECT_NE(metrics.body.find("process_resident_memory_bytes"), std::string::npos);
}

TEST_F(ApiTest, EveryKindOfModelLearnsAndPredicts) {
  ServeAll();
  for (const Kind& kind : kinds_) {
    SCOPED_TRACE(kind.name);
    for (std::uint64_t n = 0; n < 1000; n += 50) {
      const Reply reply = Must(kind.name, "learn", LearnBody(kind, Range(n, n + 50)));
      EXPECT_EQ(reply.json["accepted"], 50);
      EXPECT_EQ(reply.json["sequence"], n + 50);
    }
    const std::vector<std::uint64_t> rows = Range(1000, 1040);
    const Json outputs = Predict(kind.name, kind, rows);
    int right = 0;
    for (const std::uint64_t n : rows) {
      const std::size_t r = n - 1000;
      if (kind.name == "clusters") {
        right += outputs[0]["data"][r] == outputs[0]["data"][r % 2] ? 1 : 0;
      } else if (kind.name == "ratings") {
        right += std::abs(outputs[0]["data"][r].get<double>() - kind.label(n).get<double>()) < 0.5 ? 1 : 0;
      } else {
        const Json label = kind.label(n);
        right += outputs[1]["data"][r] == (label.is_string() ? label.get<std::string>() : label.dump()) ? 1 : 0;
      }
    }
    EXPECT_GE(right, 38) << outputs;
    EXPECT_TRUE(Comes(kind.name, "/learning/observations", 1000));
    EXPECT_TRUE(Comes(kind.name, "/learning/learned", 1000));
    EXPECT_TRUE(Comes(kind.name, "/quality/rows", kind.label ? 1000 : 0));
  }
}

TEST_F(ApiTest, EachOfSeveralNetworksAnswersByItself) {
  std::vector<Kind> networks;
  for (const std::int64_t hidden : {4, 40, 12}) networks.push_back(NetworkOf(Str("of-", hidden), hidden));
  for (const Kind& network : networks) Serve(network.name, network);
  Start();
  optimize::HeapMemory memory;
  const std::vector<std::uint64_t> rows = Range(0, 41);  // programs of all sizes
  const std::vector<float> points = Points(rows, 3)["data"].get<std::vector<float>>();
  for (int round = 0; round < 3; ++round) {
    for (const Kind& network : networks) {
      SCOPED_TRACE(network.name);
      const auto model = model::Model::Make(network.config).value();
      data::Batch batch;
      batch.rows = rows.size(), batch.width = 3, batch.dense = points.data(), batch.labels = points.data();
      model::Workspace workspace;
      std::vector<float> scores(rows.size());
      model->Predict(model->NewParameters(memory).value(), batch, workspace, scores);
      const Json answer = Must(network.name, "infer", InferBody(network, rows)).json["outputs"][0]["data"];
      ASSERT_EQ(answer.size(), rows.size());
      for (const std::uint64_t n : rows)
        EXPECT_NEAR(answer[n].get<double>(), 1 / (1 + std::exp(-scores[n])), 1e-6) << n;
    }
  }
}

TEST_F(ApiTest, LearnsARowWithAnIdOnce) {
  ServeAll();
  for (const Kind& kind : kinds_) {
    SCOPED_TRACE(kind.name);
    EXPECT_EQ(Must(kind.name, "learn", LearnBody(kind, {1, 2, 2, 3}, true)).json["accepted"], 3);
    const Json after = Predict(kind.name, kind);
    const Reply again = Must(kind.name, "learn", LearnBody(kind, {3, 1, 2}, true));
    EXPECT_EQ(again.json["accepted"], 0);
    EXPECT_EQ(again.json["duplicates"], 3);
    EXPECT_EQ(Predict(kind.name, kind), after);
    EXPECT_TRUE(Comes(kind.name, "/learning/observations", 3));
  }
}

TEST_F(ApiTest, ManyClientsWithTheSameIdsTeachEachRowOnce) {
  Serve("dense", dense_);
  Start();
  std::atomic<int> accepted{0}, duplicates{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      ApiClient client(server_.port());
      for (std::uint64_t n = 0; n < 100; n += 5) {
        const Reply reply = client.Post(Path("dense", "learn"), LearnBody(dense_, Range(n, n + 5), true));
        ASSERT_EQ(reply.status, 200) << reply.body;
        accepted += reply.json["accepted"].get<int>();
        duplicates += reply.json["duplicates"].get<int>();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(accepted, 100);
  EXPECT_EQ(duplicates, 300);
  EXPECT_TRUE(Comes("dense", "/learning/observations", 100));
}

TEST_F(ApiTest, FeedbackTeachesWhatWasPredictedOnceAndInTime) {
  const auto& deployment = Serve("dense", dense_, [](auto& options) { options.data.feedback_ttl = 3600; });
  Serve("twin", dense_);
  Start();
  const auto predict = [&](const std::string& id, std::vector<std::uint64_t> rows) {
    Json body = InferBody(dense_, rows);
    body["id"] = id;
    EXPECT_EQ(Must("dense", "infer", body).json["id"], id);
  };
  const auto feedback = [&](const Json& body) { return Must("dense", "feedback", body).json["result"]; };
  const Json untaught = Predict("dense", dense_);
  predict("one", {1});
  predict("three", {2, 3, 4});
  EXPECT_EQ(feedback({{"id", "one"}, {"label", "no"}}), "accepted");
  EXPECT_EQ(feedback({{"id", "one"}, {"label", "yes"}}), "duplicate");
  EXPECT_EQ(feedback({{"id", "never"}, {"label", "no"}}), "expired");
  const Json three = Must("dense", "feedback", {{"id", "three"}, {"labels", {"yes", "no", "yes"}}}).json;
  EXPECT_EQ(three["accepted"], 3);
  const std::uint64_t last = three["sequence"];
  EXPECT_TRUE(Eventually([&] { return deployment.stats().sequence == last; }));  // it is answered before it is learned
  EXPECT_EQ(feedback({{"id", "three"}, {"labels", {"yes", "no", "yes"}}}), "duplicate");
  predict("late", {5});
  ASSERT_TRUE(Eventually([&] { return deployment.stats().predictions_noted == 5; }));
  server_.clock.Shift(std::chrono::hours(2));
  EXPECT_EQ(feedback({{"id", "late"}, {"label", "no"}}), "expired");
  EXPECT_TRUE(Comes("dense", "/learning/observations", 4));

  Must("twin", "learn", LearnBody(dense_, {1, 2, 3, 4}));
  const Json taught = Predict("twin", dense_);
  EXPECT_TRUE(Eventually([&] { return Predict("dense", dense_) == taught; }));

  // What a feedback taught can be taken back: by the numbers it answered, or by the ids.
  Must("dense", "rollback", {{"version", "0"}, {"discard", {last - 2, last + 1}}, {"relearn", true}});
  const Json ids = Json::array({"one", "three/0"});
  const Json gone = Must("dense", "rollback", {{"version", "0"}, {"discard", {{"ids", ids}}}, {"relearn", true}}).json;
  EXPECT_EQ(gone["discarded"], 2);
  EXPECT_TRUE(Eventually([&] { return Predict("dense", dense_) != taught; }));
  EXPECT_EQ(Predict("dense", dense_), untaught);
}

TEST_F(ApiTest, RollsBackAndRelearnsBitForBit) {
  for (const Kind& kind : kinds_) Serve(kind.name, kind);
  for (const Kind& kind : kinds_) Serve(kind.name + "-twin", kind);
  Start();
  for (const Kind& kind : kinds_) {
    SCOPED_TRACE(kind.name);
    const Json start = Predict(kind.name, kind);
    for (std::uint64_t n = 0; n < 30; n += 10) Must(kind.name, "learn", LearnBody(kind, Range(n, n + 10)));
    const Json taught = Predict(kind.name, kind);
    EXPECT_NE(start, taught);
    Must(kind.name, "rollback", {{"version", "0"}});
    EXPECT_EQ(Predict(kind.name, kind), start);
    Must(kind.name, "rollback", {{"version", "0"}, {"relearn", true}});
    EXPECT_EQ(Predict(kind.name, kind), taught);
    EXPECT_TRUE(Comes(kind.name, "/training/roll_backs", 2));
    // Without the second ten rows (sequences 11 to 20) it is as if they had never come.
    Must(kind.name, "rollback", {{"version", "0"}, {"discard", {11, 21}}, {"relearn", true}});
    if (kind.name == "ratings") continue;  // its names keep their numbers, and with them where their factors start
    Must(kind.name + "-twin", "learn", LearnBody(kind, Range(0, 10)));
    Must(kind.name + "-twin", "learn", LearnBody(kind, Range(20, 30)));
    EXPECT_EQ(Predict(kind.name, kind), Predict(kind.name + "-twin", kind));
  }
}

TEST_F(ApiTest, AVersionAnswersTheSameForEver) {
  ServeAll();
  for (const Kind& kind : kinds_) {
    SCOPED_TRACE(kind.name);
    const Json start = Predict(kind.name, kind);
    Must(kind.name, "learn", LearnBody(kind, Range(0, 40)));
    EXPECT_NE(Predict(kind.name, kind), start);
    for (int i = 0; i < 3; ++i) {
      const Reply old = Must(kind.name, "versions/0/infer", InferBody(kind, Range(1000, 1040)));
      EXPECT_EQ(old.json["outputs"], start);
      EXPECT_EQ(old.json["model_version"], "0");
    }
  }
}

TEST_F(ApiTest, PinsVersionsAndLetsThemGo) {
  Serve("dense", dense_);
  Start();
  const auto pinned = [&] {
    const Json versions = client_->Get(Path("dense", "versions")).json["versions"];
    return versions.empty() ? Json() : versions[0]["pinned"];
  };
  EXPECT_EQ(pinned(), true);  // the start is, so that a replay can begin there
  Must("dense", "pin", {{"version", "0"}, {"pinned", false}});
  EXPECT_EQ(pinned(), false);
  Must("dense", "pin", {{"version", "0"}, {"pinned", true}});
  EXPECT_EQ(pinned(), true);
}

TEST_F(ApiTest, IteratesWhenAskedAndKeepsWhatComesOut) {
  ServeAll([](auto& options) {
    options.method = deploy::Method::kContinuous;
    options.schedule.max_buffer_size = 1'000'000;
  });
  for (const Kind& kind : kinds_) {
    SCOPED_TRACE(kind.name);
    Must(kind.name, "learn", LearnBody(kind, Range(0, 100)));
    EXPECT_EQ(Must(kind.name, "iterate", Json::object()).json["asked"], true);
    EXPECT_TRUE(Comes(kind.name, "/training/iterations", 1));
    Json versions;
    EXPECT_TRUE(Eventually([&] {
      versions = client_->Get(Path(kind.name, "versions")).json["versions"];
      return versions.size() == 2;
    }));
    EXPECT_EQ(versions[1]["origin"], "iteration");
    Must(kind.name, Str("versions/", versions[1]["version"].get<std::string>(), "/infer"), InferBody(kind, {1}));
  }
}

TEST_F(ApiTest, ADataSetJoinsTheHistory) {
  const Kind& table = kinds_[2];
  Serve("table", table, [](auto& options) {
    options.method = deploy::Method::kContinuous;
    options.schedule.max_buffer_size = 1'000'000;
    options.data.rate.rate = 1;
  });
  Start();
  std::string csv = "age,city,income,label,w,t,note\n";
  for (int i = 0; i < 200; ++i)
    csv += Str(20 + i % 50, i % 2 == 0 ? ",Lima," : ",Cairo,", i % 9, i % 2 == 0 ? ",yes" : ",no", ",1,", 1000 + i,
               ",-\n");
  datasets_.Write("past.csv", csv);
  const Reply reply = Must("table", "datasets", {{"path", datasets_root_ + "/past.csv"}});
  EXPECT_EQ(reply.json["rows"], 200);
  EXPECT_TRUE(Comes("table", "/learning/history", 200));
  ASSERT_TRUE(Comes("table", "/training/iterations", 1));  // which nobody has to ask for
  const Json outputs =
      Must("table", "infer", Inputs({Tensor("age", "FP32", {40, 40}), Tensor("city", "BYTES", {"Lima", "Cairo"})}))
          .json["outputs"];
  EXPECT_EQ(outputs[1]["data"], Json({"yes", "no"}));
}

TEST_F(ApiTest, RecommendsWhatTheUserHasNotRated) {
  const Kind& ratings = kinds_[3];
  Serve("ratings", ratings);
  Start();
  Must("ratings", "learn", LearnBody(ratings, Range(0, 70)));  // every user has rated every item
  Must("ratings", "learn",
       Inputs({Tensor("user", "BYTES", {"u0", "bob", "bob"}), Tensor("item", "BYTES", {"new", "i4", "i1"}),
               Tensor("labels", "FP32", {5, 5, 2})}));
  Predict("ratings", ratings);  // has seen it all
  const auto recommended = [&](const Json& body) {
    std::set<std::string> items;
    const Reply reply = Must("ratings", "recommend", body);
    for (const Json& item : reply.json["items"]) items.insert(item["item"]);
    return items;
  };
  // a, b and c stand in the model's dictionary from the start.
  EXPECT_EQ(recommended({{"user", "bob"}, {"k", 100}}),
            (std::set<std::string>{"a", "b", "c", "i0", "i2", "i3", "new"}));
  EXPECT_EQ(recommended({{"user", "u1"}, {"k", 100}}), (std::set<std::string>{"a", "b", "c", "new"}));
  EXPECT_EQ(recommended({{"user", "u1"}, {"k", 100}, {"seen", {"a", "new"}}}), (std::set<std::string>{"b", "c"}));
  const Reply best = Must("ratings", "recommend", {{"user", "bob"}, {"k", 2}});
  ASSERT_EQ(best.json["items"].size(), 2u);
  EXPECT_GE(best.json["items"][0]["score"], best.json["items"][1]["score"]);
  EXPECT_EQ(best.json["known"], true);
  EXPECT_EQ(Must("ratings", "recommend", {{"user", "nobody"}, {"k", 2}}).json["known"], false);
}

TEST_F(ApiTest, BinaryTensorsAreTheSameBits) {
  Serve("dense", dense_);
  Start();
  Must("dense", "learn", LearnBody(dense_, Range(0, 40)));
  const Json plain = Predict("dense", dense_);
  const Json tensor = InferBody(dense_, Range(1000, 1040))["inputs"][0];
  const auto values = tensor["data"].get<std::vector<float>>();
  Json head = {{"inputs",
                {{{"name", "x"},
                  {"shape", tensor["shape"]},
                  {"datatype", "FP32"},
                  {"parameters", {{"binary_data_size", values.size() * 4}}}}}},
               {"parameters", {{"binary_data_output", true}}}};
  const std::string json = head.dump();
  const Reply reply = client_->Ask(
      Post(Path("dense", "infer"), json + BytesOfValues(values),
           Str("Content-Type: application/octet-stream\r\nInference-Header-Content-Length: ", json.size(), "\r\n")));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.head.find("Content-Type: application/octet-stream"), std::string::npos);
  const std::string bytes =
      reply.body.substr(std::stoull(reply.head.substr(reply.head.find("Length: ", reply.head.find("Inference")) + 8)));
  std::vector<float> scores(40);
  ASSERT_GT(bytes.size(), scores.size() * 4);
  std::memcpy(scores.data(), bytes.data(), scores.size() * 4);
  EXPECT_EQ(scores, plain[0]["data"].get<std::vector<float>>());
  EXPECT_EQ(bytes.substr(160), BytesOfTexts(plain[1]["data"].get<std::vector<std::string>>()));
}

TEST_F(ApiTest, KnowsItsTypesHoweverTheyAreWritten) {
  Serve("dense", dense_);
  Start();
  const std::string body = InferBody(dense_, {1}).dump();
  const auto status = [&](const std::string& fields) {
    return client_->Ask(Post(Path("dense", "infer"), body, fields)).status;
  };
  EXPECT_EQ(status("Content-Type: application/json\r\n"), 200);
  EXPECT_EQ(status("Content-Type: Application/JSON;charset=utf-8\r\n"), 200);
  EXPECT_EQ(status("Content-Type: application/octet-stream ; x=y\r\n"), 200);
  EXPECT_EQ(status(Str("Inference-Header-Content-Length: ", body.size(), "\r\n")), 200);
  EXPECT_EQ(status(""), 415);
}

TEST_F(ApiTest, EventsTellHowItGoesOnceASecond) {
  Serve("dense", dense_);
  Start();
  TestClient listener(server_.port());
  listener.Send(Get(Path("dense", "events")));
  EXPECT_NE(listener.Await("event: history\ndata: ["), std::string::npos);  // perhaps with the moment it began
  Must("dense", "learn", LearnBody(dense_, Range(0, 40)));
  Predict("dense", dense_);
  server_.api().Tick();
  EXPECT_NE(listener.Await("\"observations\":40,"), std::string::npos);
  server_.api().Tick();
  const Json history = client_->Get(Path("dense", "history")).json;
  ASSERT_GE(history.size(), 2u);
  EXPECT_EQ(history.back()["observations"], 40);
}

TEST_F(ApiTest, IsNotReadyWhileItDrainsAndAnswersAllTheSame) {
  Serve("dense", dense_);
  Start();
  server_.api().Drain();
  EXPECT_EQ(client_->Get("/v2/health/ready").status, 503);
  EXPECT_EQ(client_->Get("/v2/health/live").status, 200);
  EXPECT_EQ(client_->Get(Path("dense", "ready")).status, 503);
  EXPECT_EQ(client_->Post(Path("dense", "infer"), InferBody(dense_, {1})).status, 200);
  EXPECT_EQ(client_->Post(Path("dense", "learn"), LearnBody(dense_, {1})).status, 200);
}

TEST_F(ApiTest, PredictionsGoOnWhileItLearnsIteratesAndRollsBack) {
  ServeAll([](auto& options) {
    options.method = deploy::Method::kContinuous;
    options.schedule.max_buffer_size = 50;
    options.data.rate.rate = 0.5;
  });
  std::atomic<bool> done{false};
  std::atomic<int> predictions{0};
  std::vector<std::thread> readers;
  for (const Kind& kind : kinds_) {
    readers.emplace_back([&, name = kind.name] {
      ApiClient client(server_.port());
      std::uint64_t last = 0;
      while (!done) {
        const Reply reply = client.Post(Path(name, "infer"), InferBody(kind, {1, 2, 3}));
        ASSERT_EQ(reply.status, 200) << reply.body;
        const std::uint64_t version = std::stoull(reply.json["model_version"].get<std::string>());
        EXPECT_GE(version, last);  // never older than what this client has seen
        last = version;
        ++predictions;
      }
    });
  }
  for (std::uint64_t n = 0; n < 1000; n += 20)
    for (const Kind& kind : kinds_) {
      Must(kind.name, "learn", LearnBody(kind, Range(n, n + 20)));
      if (n == 500) Must(kind.name, "rollback", {{"version", "0"}, {"relearn", true}});
    }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(predictions, 10);
  for (const Kind& kind : kinds_) {
    EXPECT_TRUE(Comes(kind.name, "/learning/observations", 1000));
    EXPECT_TRUE(Comes(kind.name, "/learning/problem", ""));
    EXPECT_TRUE(Eventually([&] { return client_->Get(Path(kind.name, "stats")).json["training"]["iterations"] > 0; }));
  }
}

}  // namespace
}  // namespace freshet::serve
