// Weights beside the model's file: read where the model may point, and nowhere else.

#include "model/onnx/outside.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/scratch_testing.h"
#include "model/onnx/read.h"
#include "model/onnx/wire.h"

namespace freshet::model::onnx {
namespace {

struct Stretch {
  std::string file, offset = "0", length = "8";
  std::int64_t numbers = 2;
};

// A file whose tensors lie in these stretches of others.
std::string ModelWith(const std::vector<Stretch>& stretches) {
  WireWriter graph;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    WireWriter tensor;
    tensor.Int(1, stretches[i].numbers);
    tensor.Int(2, 1);
    tensor.Bytes(8, Str("t", i));
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
             {"location", stretches[i].file}, {"offset", stretches[i].offset}, {"length", stretches[i].length}}) {
      WireWriter entry;
      entry.Bytes(1, key);
      entry.Bytes(2, value);
      if (!value.empty()) tensor.Bytes(13, entry.message());
    }
    tensor.Int(14, 1);
    graph.Bytes(5, tensor.message());
  }
  WireWriter opset, model;
  opset.Int(2, 13);
  model.Int(1, 7);
  model.Bytes(8, opset.message());
  model.Bytes(7, graph.message());
  return model.message();
}

class OutsideTest : public testing::Test {
 protected:
  Result<Document> Try(const std::vector<Stretch>& stretches) {
    bytes_ = ModelWith(stretches);
    Document document = TRY(Read(bytes_));
    const std::string folder = scratch_ / "model";
    TRY(ReadOutside(document, [&](std::string_view name) { return base::OpenBeneath(folder, name); }));
    return document;
  }
  std::string Refusal(const std::vector<Stretch>& stretches) {
    const auto document = Try(stretches);
    return document.ok() ? "it was taken" : document.error().text;
  }
  void ExpectRefused(const std::vector<Stretch>& stretches, const std::string& piece) {
    const std::string text = Refusal(stretches);
    EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
  }
  void SetUp() override {
    ASSERT_TRUE(files_.MakeDirectory(scratch_ / "model/deep").ok());
    const float numbers[] = {1, 2, 3, 4};
    const std::string data(reinterpret_cast<const char*>(numbers), sizeof numbers);
    scratch_.Write("model/w.data", data);
    scratch_.Write("model/deep/w.data", data);
    scratch_.Write("secret", data);
  }

  base::ScratchDirectory scratch_;
  base::PosixFiles files_;
  std::string bytes_;
};

TEST_F(OutsideTest, ReadsWhatLiesBesideTheModel) {
  const auto document = Try({{"w.data"}, {"w.data", "8"}, {"deep/w.data", "4", ""}});
  ASSERT_FALSE(document.ok()) << "all that follows is three numbers";
  const auto good = Try({{"w.data"}, {"w.data", "8"}, {"deep/w.data", "4", "", 3}});
  ASSERT_TRUE(good.ok()) << good.error().text;
  EXPECT_EQ(good.value().initializers[0].Floats(), (std::vector<float>{1, 2}));
  EXPECT_EQ(good.value().initializers[1].Floats(), (std::vector<float>{3, 4}));
  EXPECT_EQ(good.value().initializers[2].Floats(), (std::vector<float>{2, 3, 4}));
}

TEST_F(OutsideTest, NeverLeavesTheFolder) {
  ExpectRefused({{"../secret"}}, "leads out of the folder");
  ExpectRefused({{"deep/../../secret"}}, "leads out of the folder");
  ExpectRefused({{"./w.data"}}, "leads out of the folder");
  ExpectRefused({{scratch_ / "secret"}}, "leads out of the folder");
  ExpectRefused({{"deep//w.data"}}, "leads out of the folder");
  ExpectRefused({{std::string("w.data\0x", 8)}}, "is no name of a file");
  ExpectRefused({{std::string(5000, 'a')}}, "is no name of a file");
  ExpectRefused({{""}}, "does not name");
  ASSERT_EQ(symlink((scratch_ / "secret").c_str(), (scratch_ / "model/link").c_str()), 0);
  ASSERT_EQ(symlink(scratch_.path().c_str(), (scratch_ / "model/up").c_str()), 0);
  ExpectRefused({{"link"}}, "is a link, which is not followed");
  EXPECT_NE(Refusal({{"up/secret"}}), "it was taken");
  ExpectRefused({{"deep"}}, "is no regular file");
  EXPECT_NE(Refusal({{"nowhere"}}), "it was taken");
}

TEST_F(OutsideTest, HoldsPlacesAgainstTheFileAndTheShape) {
  ExpectRefused({{"w.data", "12"}}, "bytes 12 and 8 more of a file of 16");
  ExpectRefused({{"w.data", "18446744073709551615"}}, "of a file of 16");
  ExpectRefused({{"w.data", "0", "18446744073709551608"}}, "its shape says 8");
  ExpectRefused({{"w.data", "0", "4"}}, "4 bytes of data, its shape says 8");
  ExpectRefused({{"w.data", "0", "8589934592", std::int64_t{1} << 31}}, "of a file of 16");
  ExpectRefused({{"w.data", "-1"}}, "expected a number");
  ExpectRefused({{"w.data", "0", "eight"}}, "expected a number");
  ExpectRefused({{"w.data", "0", "16", 4}, {"w.data"}}, "again and again");
}

}  // namespace
}  // namespace freshet::model::onnx
