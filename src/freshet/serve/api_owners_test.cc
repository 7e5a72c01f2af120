// Predictions that wait for their labels belong to the token that asked for them.

#include "serve/api_testing.h"

namespace freshet::serve {
namespace {

constexpr std::string_view kShop = "shop-token-0123456789", kWeb = "web-token-0123456789";
constexpr std::string_view kTeacher = "teacher-token-0123456789";

class ApiOwners : public testing::Test {
 protected:
  ApiOwners() {
    const data::Description dense = DenseInput(3, {"0", "1"});
    deployment_ = &server_.Add("dense", dense, LinearFor(dense));
    tokens_ = server_.scratch / "tokens";
    WriteTokens(Str("predict shop ", kShop, "\npredict web ", kWeb, "\nlearn ", kTeacher, "\n"));
    HttpOptions http;
    http.token_file = tokens_;
    server_.Start(http);
  }
  void WriteTokens(const std::string& text) {
    server_.scratch.Write("tokens", text);
    chmod(tokens_.c_str(), 0600);
  }
  // A prediction under an id, once it is noted.
  void Predict(std::string_view token, const std::string& id, double x = 1) {
    Json body = Inputs({Matrix({{x, x, x}})});
    body["id"] = id;
    ASSERT_EQ(Client(token).Post("/v2/models/dense/infer", body).status, 200);
    ++noted_;
    ASSERT_TRUE(Eventually([&] { return deployment_->stats().predictions_noted == noted_; }));
  }
  Reply Label(const Json& body) { return Client(kTeacher).Post("/v2/models/dense/feedback", body); }
  ApiClient Client(std::string_view token) { return ApiClient(server_.port(), std::string(token)); }

  ApiServer server_;
  deploy::Deployment* deployment_ = nullptr;
  std::string tokens_;
  std::uint64_t noted_ = 0;
};

TEST_F(ApiOwners, ALabelNamesTheOwnerWhenSeveralHoldTheId) {
  Predict(kShop, "order 1");
  Predict(kWeb, "order 1", 9);
  const Reply unclear = Label({{"id", "order 1"}, {"label", 1}});
  EXPECT_EQ(unclear.status, 400);
  EXPECT_NE(unclear.body.find("shop, web"), std::string::npos) << unclear.body;
  EXPECT_EQ(deployment_->stats().observations, 0u);
  EXPECT_EQ(Label({{"id", "order 1"}, {"label", 1}, {"owner", "shop"}}).json["result"], "accepted");
  EXPECT_EQ(Label({{"id", "order 1"}, {"label", 1}, {"owner", "shop"}}).json["result"], "duplicate");
  // Also a label that is sent again must not end on the other's row.
  EXPECT_EQ(Label({{"id", "order 1"}, {"label", 1}}).status, 400);
  EXPECT_EQ(Label({{"id", "order 1"}, {"label", 0}, {"owner", "web"}}).json["result"], "accepted");
  EXPECT_EQ(Label({{"id", "order 1"}, {"label", 0}, {"owner", "nobody"}}).json["result"], "expired");
}

TEST_F(ApiOwners, AnIdThatOneHoldsIsLabelledByAnyTeacher) {
  Predict(kShop, "order 1");
  Predict(kWeb, "order 2");
  EXPECT_EQ(Label({{"id", "order 1"}, {"label", 1}}).json["result"], "accepted");
  EXPECT_EQ(Label({{"id", "order 1"}, {"label", 1}}).json["result"], "duplicate");
  EXPECT_EQ(Label({{"id", "order 2"}, {"label", 1}, {"owner", "web"}}).json["result"], "accepted");
}

TEST_F(ApiOwners, ATokenThatIsRotatedKeepsWhatItPredicted) {
  constexpr std::string_view kNext = "next-shop-token-0123456789";
  Predict(kShop, "order 1", 1);
  WriteTokens(Str("# rotated\npredict shop ", kNext, "\npredict web ", kWeb, "\nlearn ", kTeacher, "\n"));
  ASSERT_TRUE(Eventually([&] { return Client(kNext).Get("/v2").status == 200; }));
  Predict(kNext, "order 1", 2);  // replaces its own
  EXPECT_EQ(Label({{"id", "order 1"}, {"label", 1}}).json["result"], "accepted");
}

}  // namespace
}  // namespace freshet::serve
