#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// Every file of the corpora, among them all that ever broke something, goes through its target without harm.

using Target = int(const std::uint8_t* data, std::size_t size);
extern "C" Target Fuzz_csv, Fuzz_frame, Fuzz_handshake, Fuzz_http, Fuzz_idx, Fuzz_image, Fuzz_infer, Fuzz_journal,
    Fuzz_libsvm, Fuzz_network, Fuzz_onnx, Fuzz_safetensors, Fuzz_vw;

namespace {

void Replay(Target* target, const std::string& name) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(FRESHET_CORPUS "/" + name))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  EXPECT_GE(paths.size(), 10u);
  for (const auto& path : paths) {
    SCOPED_TRACE(path.string());
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
}

TEST(Corpus, OfTablesDoesNoHarm) { Replay(Fuzz_csv, "csv"); }
TEST(Corpus, OfFramesDoesNoHarm) { Replay(Fuzz_frame, "frame"); }
TEST(Corpus, OfHandshakesDoesNoHarm) { Replay(Fuzz_handshake, "handshake"); }
TEST(Corpus, OfHttpRequestsDoesNoHarm) { Replay(Fuzz_http, "http"); }
TEST(Corpus, OfIdxFilesDoesNoHarm) { Replay(Fuzz_idx, "idx"); }
TEST(Corpus, OfImagesDoesNoHarm) { Replay(Fuzz_image, "image"); }
TEST(Corpus, OfInferenceRequestsDoesNoHarm) { Replay(Fuzz_infer, "infer"); }
TEST(Corpus, OfJournalsDoesNoHarm) { Replay(Fuzz_journal, "journal"); }
TEST(Corpus, OfLibsvmTextDoesNoHarm) { Replay(Fuzz_libsvm, "libsvm"); }
TEST(Corpus, OfNetworkTextsDoesNoHarm) { Replay(Fuzz_network, "network"); }
TEST(Corpus, OfOnnxFilesDoesNoHarm) { Replay(Fuzz_onnx, "onnx"); }
TEST(Corpus, OfSafetensorsFilesDoesNoHarm) { Replay(Fuzz_safetensors, "safetensors"); }
TEST(Corpus, OfVwTextDoesNoHarm) { Replay(Fuzz_vw, "vw"); }

}  // namespace
