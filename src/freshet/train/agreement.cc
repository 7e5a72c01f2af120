#include "train/agreement.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/option.h"
#include "data/images/image_folder.h"

namespace freshet::train {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kEndBytes = 64 << 10;  // enough for rows of two shares of one data set to differ

FileAccount LookAtFolder(base::Files& files, const std::string& path) {
  FileAccount account{.path = path, .folder = true};
  for (const char* const pattern : {"/*", "/*/*"}) {
    const auto found = files.Glob(path + pattern);
    if (!found.ok()) continue;
    for (const std::string& name : found.value()) {
      const std::string_view inside = std::string_view(name).substr(path.size());
      account.checksum = base::Crc32cOf(std::span(inside), account.checksum);
      ++account.bytes;
    }
  }
  return account;
}

Result<FileAccount> LookAtFile(base::Files& files, const std::string& path) {
  const auto file = files.IsDevice(path) ? nullptr : TRY(files.OpenRead(path));
  if (file == nullptr || !file->size())
    return Error{Code::kInvalid, Str(path == "-" ? "standard input (-)" : path,
                                     " is not a file that all workers can read the same rows from; give a file, or ",
                                     Option("split"), " own when each worker's input is its own share")};
  FileAccount account{.path = path, .bytes = *file->size()};
  std::string end(kEndBytes, '\0');
  for (const std::uint64_t offset :
       {std::uint64_t{0}, account.bytes - std::min<std::uint64_t>(account.bytes, kEndBytes)}) {
    const std::size_t got = TRY(file->ReadAt(offset, end));
    account.checksum = base::Crc32cOf(std::span(end).first(got), account.checksum);
  }
  return account;
}

// In JSON a path is UTF-8; other bytes are for looking at only.
std::string Shown(const FileAccount& file) { return Quoted(file.path); }

Json ToJson(const std::string& split, const std::vector<FileAccount>& files) {
  Json json = {{"split", split}, {"files", Json::array()}};
  for (const FileAccount& file : files)
    json["files"].push_back(
        {{"shown", Shown(file)}, {"bytes", file.bytes}, {"checksum", file.checksum}, {"folder", file.folder}});
  return json;
}

std::string Words(const Json& file) {
  const auto size = file.at("bytes").get<std::uint64_t>();
  return Str(file.at("shown").get<std::string>(), " of ", Grouped(size),
             file.at("folder").get<bool>() ? " files" : " bytes");
}

// How what one reads differs from what rank 0 reads; "" when it does not.
std::string Difference(const Json& first, const Json& other, const std::string& name, const std::string& other_name) {
  const Json &files = first.at("files"), &others = other.at("files");
  if (files.size() != others.size())
    return Str(name, " reads ", files.size(), " files, ", other_name, " reads ", others.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    Json one = files[i], two = others[i];
    const std::string which = files.size() == 1 ? "" : Str("file ", i + 1, ": ");
    const std::string both = Str(which, name, " reads ", Words(one), ", ", other_name, " reads ", Words(two));
    one.erase("shown"), two.erase("shown");
    if (one == two) continue;
    const bool alike = one.at("bytes") == two.at("bytes") && one.at("folder") == two.at("folder");
    return Str(both, alike ? ", with other content" : "");
  }
  return "";
}

std::map<std::string, std::string> Pairs(const std::string& lines) {
  std::map<std::string, std::string> pairs;
  for (const std::string_view line : Split(lines, '\n'))
    if (const std::size_t at = line.find(" = "); at != std::string_view::npos)
      pairs.emplace(line.substr(0, at), line.substr(at + 3));
  return pairs;
}

}  // namespace

Result<std::vector<FileAccount>> LookAt(base::Files& files, const std::vector<std::string>& patterns) {
  std::vector<FileAccount> accounts;
  for (const std::string& pattern : patterns)
    for (const std::string& path : TRY(files.Glob(pattern)))
      accounts.push_back(data::ImageFolder::Is(files, path) ? LookAtFolder(files, path) : TRY(LookAtFile(files, path)));
  return accounts;
}

Result<void> AgreeOnFiles(data::Others& others, const std::string& split, const std::vector<FileAccount>& mine) {
  std::vector<Json> all;
  for (const std::string& text : TRY(others.Tell("files", ToJson(split, mine).dump())))
    all.push_back(Json::parse(text, nullptr, false));
  try {  // the JSON library's own errors end here
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank].at("split") != all[0].at("split"))
        return others.Refuse(Str(others.Name(0), " has ", Option("split"), " ", all[0].at("split").get<std::string>(),
                                 ", ", others.Name(rank), " ", Option("split"), " ",
                                 all[rank].at("split").get<std::string>(), "; give all workers the same"));
      if (split == "own") continue;
      const std::string difference = Difference(all[0], all[rank], others.Name(0), others.Name(rank));
      if (!difference.empty())
        return others.Refuse(Str("workers see different files: ", difference, "; with ", Option("split"), " ", split,
                                 " all share out the rows of the same files: give all the same ones, or ",
                                 Option("split"), " own when each worker's input is its own share"));
    }
  } catch (const Json::exception& problem) {
    return Error{Code::kCorrupt, Str("what another worker says of its files is damaged: ", problem.what())};
  }
  return {};
}

Result<void> AgreeOnSettings(data::Others& others, std::string_view about, const std::string& mine) {
  const auto texts = TRY(others.Tell(about, mine));
  const auto first = Pairs(texts[0]);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const auto other = Pairs(texts[rank]);
    for (const auto* const pairs : {&first, &other})
      for (const auto& [name, value] : *pairs) {
        const auto one = first.find(name), two = other.find(name);
        const std::string here = one == first.end() ? "nothing" : one->second;
        const std::string there = two == other.end() ? "nothing" : two->second;
        if (here == there) continue;
        return others.Refuse(Str("workers have different settings: ", name, " is ", here, " for ", others.Name(0),
                                 " and ", there, " for ", others.Name(rank), "; give all workers the same"));
      }
  }
  return {};
}

}  // namespace freshet::train
