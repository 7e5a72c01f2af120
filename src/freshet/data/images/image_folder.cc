#include "data/images/image_folder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/option.h"
#include "base/random.h"
#include "data/images/pixels.h"

namespace freshet::data {
namespace {

constexpr std::size_t kMostSide = 8192;
constexpr std::uint64_t kMostFileBytes = 256 << 20;
constexpr std::size_t kBlockBytes = 4 << 20, kMostBlockImages = 64;  // large enough to mix, small enough to share out
constexpr std::uint64_t kMostNamed = 20;                             // bad images, in warnings

// A pattern that stands for this very path.
std::string Escaped(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// What a pattern stands for; nothing is fine.
Result<std::vector<std::string>> Matches(base::Files& files, const std::string& pattern) {
  auto found = files.Glob(pattern);
  if (!found.ok() && found.error().code == Code::kNotFound) return std::vector<std::string>();
  return found;
}

std::string_view LastName(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Result<ImageSize> ParseImageSize(std::string_view text) {
  const auto wrong = [&] {
    return Error{Code::kInvalid,
                 Str(Option("image-size"), " ", Quoted(text), ": expected N or HEIGHTxWIDTH, each 1 to ", kMostSide,
                     ", as in ", Option("image-size"), " 224")};
  };
  const auto pieces = Split(text, 'x');
  if (pieces.empty() || pieces.size() > 2) return wrong();
  std::vector<std::size_t> sides;
  for (const std::string_view piece : pieces) {
    std::size_t side = 0;
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), side);
    if (error != std::errc{} || end != piece.data() + piece.size() || side < 1 || side > kMostSide) return wrong();
    sides.push_back(side);
  }
  return ImageSize{sides.front(), sides.back()};
}

bool ImageFolder::Is(base::Files& files, const std::string& path) { return path != "-" && files.Exists(path + "/"); }

Result<std::unique_ptr<ImageFolder>> ImageFolder::Open(const base::Env& env, ReaderOptions options,
                                                       const InputOptions& input, Description& description) {
  std::unique_ptr<ImageFolder> folder(new ImageFolder(env, std::move(options)));
  for (const std::string& pattern : folder->options_.paths)
    for (const std::string& path : TRY(env.files.Glob(pattern))) TRY(folder->List(path));
  if (folder->files_.empty())
    return Error{Code::kNotFound,
                 Str(Join(folder->options_.paths, ", "), ": found no images, expected JPEG or PNG files in ",
                     "one folder a class, as in DIR/cat/1.jpg")};
  if (folder->files_.size() > std::numeric_limits<std::uint32_t>::max())
    return Error{Code::kInvalid, Str(folder->files_.size(), " images, expected fewer than 2^32; give them in parts")};
  if (description.format.empty()) {
    if (input.others != nullptr) TRY(AgreeOnFormat(*input.others, kFormat));
    TRY(folder->Describe(input, description));
    if (input.others != nullptr) TRY(AgreeOnDescription(*input.others, description));
  }
  TRY(folder->Follow(description));
  folder->Arrange();
  return folder;
}

Result<void> ImageFolder::List(const std::string& path) {
  if (!Is(env_.files, path)) {
    if (options_.labelled)
      return Error{Code::kInvalid,
                   Str(path, ": a single file has no label; name the folder that has one folder a class")};
    files_.push_back({path, "", 0});
    return {};
  }
  const auto classes = TRY(Matches(env_.files, Escaped(path) + "/*/"));
  for (const std::string& directory : classes)
    for (std::string& file : TRY(Matches(env_.files, Escaped(directory) + "*")))
      files_.push_back({std::move(file), std::string(LastName(directory)), 0});
  if (!classes.empty()) return {};
  if (options_.labelled)
    return Error{Code::kBadInput, Str(path, " is a directory without folders of images, expected one a class, as in ",
                                      path, "/cat/1.jpg")};
  for (std::string& file : TRY(Matches(env_.files, Escaped(path) + "/*"))) files_.push_back({std::move(file), "", 0});
  return {};
}

Result<void> ImageFolder::Describe(const InputOptions& input, Description& description) const {
  if (input.image_size.empty())
    return Error{Code::kInvalid,
                 Str(files_[0].path, ": images come in many sizes; say to which they are brought, as in ",
                     Option("image-size"), " 224")};
  const ImageSize size = TRY(ParseImageSize(input.image_size));
  description.format = kFormat;
  description.dense = true;
  description.shape = {input.grey ? 1u : 3u, size.height, size.width};
  description.features = description.shape[0] * size.height * size.width;
  description.scale = 1.0 / 255;
  description.standardise = false;
  std::vector<std::string> seen;
  for (const File& file : files_)
    if (!file.folder.empty() && (seen.empty() || seen.back() != file.folder)) seen.push_back(file.folder);
  InputOptions settled = input;
  if (settled.task == Labels::Kind::kAuto) settled.task = Labels::Kind::kClasses;
  return SettleLabels({.bytes = {}, .path = options_.paths[0]}, settled, seen, description.labels);
}

Result<void> ImageFolder::Follow(const Description& description) {
  const auto& shape = description.shape;
  const bool images = description.dense && shape.size() == 3 && (shape[0] == 1 || shape[0] == 3) &&
                      std::all_of(shape.begin(), shape.end(), [](auto n) { return n >= 1 && n <= kMostSide; }) &&
                      description.features == shape[0] * shape[1] * shape[2];
  if (!images)
    return Error{Code::kInvalid, Str(options_.paths[0], ": images, expected rows of format ", description.format,
                                     ", which the model was trained with")};
  channels_ = shape[0];
  size_ = {shape[1], shape[2]};
  scale_ = static_cast<float>(description.scale);
  labels_ = description.labels;
  block_images_ = std::clamp<std::size_t>(kBlockBytes / (description.features * sizeof(float)), 1, kMostBlockImages);
  return {};
}

// Orders the files, numbers them, and keeps those of this part.
void ImageFolder::Arrange() {
  if (options_.labelled) {
    std::vector<std::pair<std::uint64_t, std::size_t>> keys;
    for (std::size_t i = 0; i < files_.size(); ++i)
      keys.emplace_back(base::Hash64(Str(files_[i].folder, "/", LastName(files_[i].path))), i);
    std::sort(keys.begin(), keys.end());
    std::vector<File> sorted;
    for (const auto& [key, i] : keys) sorted.push_back(std::move(files_[i]));
    files_ = std::move(sorted);
  }
  std::vector<File> kept;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i].sample = i;
    if (i % options_.part.count == options_.part.index) kept.push_back(std::move(files_[i]));
  }
  files_ = std::move(kept);
  Permute(0);
}

void ImageFolder::Permute(std::uint64_t seed) {
  order_.resize(files_.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (seed == 0) return;
  base::Random random(seed, "image order");
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.Below(i)]);
}

Result<bool> ImageFolder::Next(Rows& rows) {
  const std::uint64_t mine = next_.fetch_add(1);
  if (mine >= blocks()) return false;
  rows.Clear();
  rows.sequence = mine - first_;
  rows.begin = rows.end = {};
  rows.begin.block = mine;
  rows.end.block = mine + 1;
  rows.width = channels_ * size_.height * size_.width;
  Scratch scratch;
  const std::size_t end = std::min<std::size_t>((mine + 1) * block_images_, files_.size());
  for (std::size_t i = mine * block_images_; i < end; ++i) {
    const File& file = files_[order_[i]];
    if (const auto result = ReadImage(file, scratch, rows); !result.ok())
      rows.bad.push_back({file.sample, 0, result.error().text, file.path});
  }
  return true;
}

Result<void> ImageFolder::ReadImage(const File& file, Scratch& scratch, Rows& rows) const {
  float label = std::nanf("");
  if (!file.folder.empty()) {
    label = labels_.Map(std::string_view(file.folder));
    if (!std::isfinite(label) && options_.labelled)
      return Error{Code::kBadInput, Str("label ", Quoted(file.folder), ", expected ", labels_.Expected())};
    if (!std::isfinite(label)) label = std::nanf("");
  }
  const auto input = TRY(env_.files.OpenRead(file.path));
  const std::uint64_t bytes = input->size().value_or(0);
  if (bytes > kMostFileBytes)
    return Error{Code::kBadInput, Str("a file of ", bytes, " bytes, expected an image of at most ", kMostFileBytes)};
  scratch.bytes.Resize(bytes);
  const std::size_t got = TRY(input->ReadAt(0, scratch.bytes.span()));
  TRY(DecodeImage({scratch.bytes.data(), got}, channels_, size_, scratch.image));
  scratch.resizer.Resize(scratch.image, size_, scratch.pixels);
  rows.labels.Append(label);
  rows.samples.Append(file.sample);
  AppendPixels({reinterpret_cast<const char*>(scratch.pixels.data()), scratch.pixels.size()}, scale_, rows.dense);
  return {};
}

Result<void> ImageFolder::Finish(Rows& rows) {
  for (const BadRow& bad : rows.bad) {
    if (auto result = bad_rows_.Add(bad.text, bad.what, bad.text); !result.ok()) {
      const Error& error = result.error();
      return Error{error.code, Str(error.text, "; remove this file, or allow for more with ", Option("max-bad-rows"))};
    }
    if (bad_rows_.first_pass() && bad_rows_.count() <= kMostNamed)
      env_.log.Warn("image_set_aside", "file", bad.text, "why", bad.what);
  }
  return {};
}

Result<void> ImageFolder::Seek(const Position& position) {
  if (position.block > blocks())
    return Error{Code::kBadInput, Str(options_.paths[0], ": has ", blocks(),
                                      " blocks of images, the earlier run stopped after ", position.block)};
  bad_rows_.NewPass();
  first_ = position.block;
  next_ = position.block;
  return {};
}

std::optional<double> ImageFolder::Fraction(const Position& position) const {
  if (files_.empty()) return std::nullopt;
  return static_cast<double>(position.block) / static_cast<double>(blocks());
}

}  // namespace freshet::data
