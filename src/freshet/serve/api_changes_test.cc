// Models that change while they are served: a class more, or another model file.

#include "serve/api_testing.h"

namespace freshet::serve {
namespace {

class ApiChanges : public testing::Test {
 protected:
  deploy::Deployment& Serve(const std::string& name, std::uint64_t new_classes = 0) {
    return server_.Add(name, input_, LinearFor(input_), [=](auto& options) { options.new_classes = new_classes; });
  }
  void Start() {
    server_.Start();
    client_ = std::make_unique<ApiClient>(server_.port());
  }
  Reply Post(const std::string& model, const std::string& call, const Json& body) {
    return client_->Post(Str("/v2/models/", model, "/", call), body);
  }
  Reply Learn(const std::string& model, const std::vector<double>& x, const std::string& label) {
    return Post(model, "learn", Inputs({Matrix({x}), Tensor("labels", "BYTES", Json::array({label}))}));
  }
  Json Infer(const std::string& model, const std::vector<double>& x) {
    const Reply reply = Post(model, "infer", Inputs({Matrix({x})}));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json["outputs"];
  }

  const data::Description input_ = DenseInput(3, {"cat", "cow", "dog"});
  const base::ScratchDirectory files_;
  const std::string root_ = std::filesystem::canonical(files_.path()).string();
  ApiServer server_{{root_}};
  std::unique_ptr<ApiClient> client_;
};

TEST_F(ApiChanges, ALabelNeverSeenBeforeIsLearnedWhereThatIsWanted) {
  Serve("closed");
  Serve("open", 1);
  Start();
  const Reply refused = Learn("closed", {1, 0, 0}, "emu");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("--new-classes"), std::string::npos) << refused.body;
  EXPECT_EQ(Infer("open", {0, 0, 9})[0]["shape"], Json({1, 3}));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Learn("open", {0, 0, 9}, "emu").status, 200);
    EXPECT_EQ(Learn("open", {9, 0, 0}, "cat").status, 200);
  }
  EXPECT_TRUE(Eventually([&] { return Infer("open", {0, 0, 9})[1]["data"] == Json({"emu"}); }));
  EXPECT_EQ(Infer("open", {0, 0, 9})[0]["shape"], Json({1, 4}));
  const Reply full = Learn("open", {1, 0, 0}, "fox");
  EXPECT_EQ(full.status, 400);
  EXPECT_NE(full.body.find("no room"), std::string::npos) << full.body;
}

TEST_F(ApiChanges, AModelFileTakesOver) {
  Serve("one");
  deploy::Deployment& two = Serve("two");
  Start();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Learn("two", {0, 5, 1}, "cow").status, 200);
  ASSERT_TRUE(Eventually([&] { return two.stats().version >= 10; }));
  const Json taught = Infer("two", {0, 5, 1});
  EXPECT_EQ(taught[1]["data"], Json({"cow"}));
  const std::string path = root_ + "/two.model";
  {
    const auto& state = two.models().state();
    ASSERT_TRUE(model::SaveModel(server_.files, path, two.model(), state.parameters, input_, {}).ok());
  }
  EXPECT_NE(Infer("one", {0, 5, 1}), taught);
  const Reply deployed = Post("one", "deploy", {{"path", path}});
  EXPECT_EQ(deployed.status, 200) << deployed.body;
  EXPECT_TRUE(Eventually([&] { return Infer("one", {0, 5, 1}) == taught; }));
  EXPECT_EQ(Post("one", "deploy", {{"path", "/etc/passwd"}}).status, 400);
  EXPECT_EQ(Post("one", "deploy", {{"path", root_ + "/nothing.model"}}).status, 404);
  files_.Write("text.model", "not a model");
  EXPECT_EQ(Post("one", "deploy", {{"path", root_ + "/text.model"}}).status, 400);
}

}  // namespace
}  // namespace freshet::serve
