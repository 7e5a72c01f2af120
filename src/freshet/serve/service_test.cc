#include "serve/service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/option.h"
#include "base/scratch_testing.h"
#include "base/system.h"
#include "data/generate.h"
#include "serve/http/testing.h"
#include "train/job.h"

namespace freshet::serve {
namespace {

using Json = nlohmann::json;

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    base::StringFile file;
    ASSERT_TRUE(data::Generate({.kind = "sea", .rows = 1000}, file).ok());
    train::Job job;
    job.input.paths = {scratch_.Write("sea.csv", file.text)};
    auto outcome = train::Run(system_.env(), memory_, job);
    ASSERT_TRUE(outcome.ok()) << outcome.error().text;
    ASSERT_TRUE(train::Save(system_.env().files, outcome.value(), scratch_ / "sea.model").ok());
  }
  Offer Named(const std::string& name) {
    auto trained = model::LoadModel(system_.env().files, scratch_ / "sea.model", memory_).value();
    auto options = OptionsFor(system_.env().files, scratch_ / ("state/" + name), trained).value();
    return {name, std::move(trained), std::move(options)};
  }
  Result<std::unique_ptr<Service>> Open(const std::vector<std::string>& names) {
    std::vector<Offer> offers;
    for (const std::string& name : names) offers.push_back(Named(name));
    return Service::Open(system_.env(), memory_, {}, std::move(offers));
  }
  TestClient::Answer Post(int port, const std::string& call, const std::string& body) {
    TestClient client(port);
    return client.Ask(Str("POST /v2/models/sea/", call,
                          " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json",
                          "\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  }

  base::ScratchDirectory scratch_;
  base::System system_{[](std::string_view) {}, 1};
  optimize::HeapMemory memory_;
};

// A service that runs on a thread of its own until the test is over.
class Running {
 public:
  explicit Running(Service& service) : runs_([this, &service] { EXPECT_TRUE(service.Run(stop_).ok()); }) {}
  ~Running() { stop_ = true; }

 private:
  std::atomic<bool> stop_ = false;
  std::jthread runs_;
};

const std::string kRow = R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[8,9,1]}]})";
const std::string kLabelled = R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]},)"
                              R"({"name":"labels","shape":[1],"datatype":"INT64","data":[0]}]})";

TEST_F(ServiceTest, AnswersAndLearnsUntilItIsToldToStopAndGoesOnFromItsState) {
  const auto score = [this](Service& service) -> double {
    return Json::parse(Post(service.port(), "infer", kRow).body)["outputs"][0]["data"][0];
  };
  double learned = 0;
  {
    auto opened = Open({"sea"});
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    Service& service = *opened.value();
    EXPECT_EQ(service.address(), Str("http://127.0.0.1:", service.port(), "/"));
    const Running running(service);
    const double before = score(service);
    EXPECT_EQ(Post(service.port(), "learn", kLabelled).status, 200);
    EXPECT_TRUE(Eventually([&] { return service.models()[0]->deployment().stats().learned == 1; }));
    learned = score(service);
    EXPECT_NE(learned, before);
  }
  auto again = Open({"sea"});
  ASSERT_TRUE(again.ok()) << again.error().text;
  EXPECT_EQ(again.value()->models().at(0)->deployment().stats().observations, 1u);
  const Running running(*again.value());
  EXPECT_EQ(score(*again.value()), learned);
}

TEST_F(ServiceTest, RefusesNamesThatCannotBePartOfAnAddress) {
  EXPECT_EQ(Open({"a/b"}).error().code, Code::kInvalid);
  EXPECT_EQ(Open({""}).error().code, Code::kInvalid);
  EXPECT_EQ(Open({"twice", "twice"}).error().text, "two models are called 'twice'");
}

TEST_F(ServiceTest, WhatIsNotSaidOfKeepingAModelSuitsIt) {
  const Offer offer = Named("sea");
  EXPECT_EQ(offer.options.optimizer.kind, "adagrad");  // of a standardised table
  EXPECT_EQ(offer.options.optimizer.schedule.kind, "constant");
  EXPECT_EQ(offer.options.directory, scratch_ / "state/sea");
  auto recipe = OptionsFor(system_.env().files, "x", offer.trained, {.use = train::Learning::Use::kReplay}, "none");
  EXPECT_EQ(recipe.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace freshet::serve
