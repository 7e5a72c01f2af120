#include "deploy/versions.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "deploy/log/directory.h"
#include "model/model_file.h"

namespace freshet::deploy {
namespace {

using Json = nlohmann::ordered_json;
using model::Part;

Json JsonOf(const VersionInfo& info) {
  return {{"version", Str(info.id)},    {"origin", info.origin}, {"applied", info.applied}, {"learned", info.learned},
          {"recent_error", info.error}, {"made", info.made},     {"pinned", info.pinned}};
}

VersionInfo InfoOf(const Json& json) {
  VersionInfo info;
  info.id = std::stoull(json.at("version").get<std::string>());
  info.origin = json.at("origin");
  info.applied = json.at("applied");
  info.learned = json.at("learned");
  info.error = json.at("recent_error");
  info.made = json.at("made");
  info.pinned = json.at("pinned");
  return info;
}

constexpr std::string_view kModelFormat = "freshet model 1", kVitalsFormat = "freshet vitals 1";

// Files of a later format are not damaged: nothing may go on without them. Vitals of earlier programs name none.
Result<void> CheckFormat(const data::TensorFile& file, std::string_view expected, const std::string& path) {
  const auto format = file.Meta("format");
  if (!format.ok() || format.value() == expected) return {};
  return Error{Code::kInvalid, Str(path, ": is of the format ", Quoted(format.value()), ", this program reads ",
                                   Quoted(expected), "; use the freshet that wrote it")};
}

// What a file says of its version, which must be the one it goes by.
Result<VersionInfo> InfoIn(const data::TensorFile& file, const std::string& path, std::uint64_t id) {
  const std::string text = TRY(file.Meta("version"));
  try {
    VersionInfo info = InfoOf(Json::parse(text));
    if (info.id == id) return info;
    return Error{Code::kCorrupt, Str(path, ": holds version ", info.id, ", not ", id, " as its name says")};
  } catch (const std::exception& problem) {
    return Error{Code::kCorrupt, Str(path, ": ", problem.what())};
  }
}

Result<VersionInfo> ReadInfo(base::Files& files, const std::string& vitals_path) {
  const auto file = TRY(data::TensorFile::Read(files, vitals_path));
  TRY(CheckFormat(file, kVitalsFormat, vitals_path));
  return InfoIn(file, vitals_path, std::strtoull(vitals_path.c_str() + vitals_path.rfind('/') + 1, nullptr, 10));
}

// Of versions in order, the one whose loss widens the smallest gap, measured by how long ago it was: what is left
// stands closer the newer it is, and an operator can go back a minute as well as a week. Never the newest.
std::size_t LeastMissed(const std::vector<std::uint64_t>& ids) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const double gap = static_cast<double>(ids[i + 1] - (i > 0 ? ids[i - 1] : 0));
    const double age = static_cast<double>(ids.back() - ids[i]);
    if (gap / age >= least) continue;
    least = gap / age;
    best = i;
  }
  return best;
}

}  // namespace

std::string VersionInfo::ToJson() const { return JsonOf(*this).dump(); }

std::string Versions::PathOf(std::uint64_t id) const {
  char name[40];
  std::snprintf(name, sizeof name, "/%020llu.model", static_cast<unsigned long long>(id));
  return directory_ + name;
}

Result<std::unique_ptr<Versions>> Versions::Open(const base::Env& env, std::string directory) {
  TRY(env.files.MakeDirectory(directory));
  std::unique_ptr<Versions> versions(new Versions(env, std::move(directory)));
  for (const std::string& path : TRY(FilesIn(env.files, versions->directory_, ".model.vitals"))) {
    const auto info = ReadInfo(env.files, path);
    if (!info.ok() && info.error().code == Code::kInvalid) return info.error();
    if (!info.ok())
      versions->Damaged(path, info.error());
    else if (env.files.Exists(versions->PathOf(info.value().id)))
      versions->Complete(info.value());
  }
  for (const std::string& path : TRY(FilesIn(env.files, versions->directory_, ".draft"))) TRY(env.files.Remove(path));
  return versions;
}

Result<void> Versions::RemoveIncomplete() {
  for (const std::string& path : TRY(FilesIn(env_.files, directory_, ".model")))
    if (!env_.files.Exists(path + ".vitals")) TRY(env_.files.Remove(path));
  return {};
}

Result<void> Versions::Save(const VersionInfo& info, const model::Model& model, const State& state,
                            const data::Description& description) {
  data::Metadata metadata;
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  metadata["format"] = kModelFormat;
  metadata["model"] = model.config().ToJson();
  metadata["version"] = info.ToJson();
  metadata["step"] = Str(state.optimizer->step());
  metadata["optimizer"] = state.optimizer->name();
  model::AddBlocks(state.parameters, Part::kRows, "", tensors);
  model::AddBlocks(state.parameters, Part::kBeside, "beside.", tensors);
  model::AddBlocks(state.optimizer->state(), Part::kRows, "state.", tensors);
  data::Description of_state = description;
  of_state.moments = state.moments;
  of_state.target = state.target;
  of_state.Save(metadata, tensors, storage);
  TRY(env_.faults.Hit("version.save"));
  return base::WriteAtomic(env_.files, PathOf(info.id),
                           [&](base::OutputFile& file) { return data::WriteTensors(file, tensors, metadata); });
}

Result<void> Versions::SaveVitals(const VersionInfo& info, const std::string& json) {
  TRY(env_.faults.Hit("version.vitals"));
  TRY(base::WriteAtomic(env_.files, VitalsPathOf(info.id), [&](base::OutputFile& file) {
    return data::WriteTensors(file, {},
                              {{"format", std::string(kVitalsFormat)}, {"version", info.ToJson()}, {"vitals", json}});
  }));
  Complete(info);
  const base::Lock lock(mutex_);
  held_.erase(held_.begin(), held_.lower_bound(info.id));
  return {};
}

void Versions::Complete(const VersionInfo& info) {
  const base::Lock lock(mutex_);
  complete_[info.id] = info;
}

std::vector<VersionInfo> Versions::list() const {
  const base::Lock lock(mutex_);
  std::vector<VersionInfo> all;
  for (const auto& [id, info] : complete_) all.push_back(info);
  return all;
}

std::optional<VersionInfo> Versions::Find(std::uint64_t id) const {
  const base::Lock lock(mutex_);
  const auto found = complete_.find(id);
  return found == complete_.end() ? std::nullopt : std::optional(found->second);
}

Result<data::Description> Versions::Load(std::uint64_t id, const model::Model& model, State& state) const {
  const data::TensorFile file = TRY(data::TensorFile::Read(env_.files, PathOf(id)));
  TRY(CheckFormat(file, kModelFormat, PathOf(id)));
  TRY(InfoIn(file, PathOf(id), id));
  if (TRY(file.Meta("model")) != model.config().ToJson())
    return Error{Code::kInvalid, Str(PathOf(id), ": is a version of another model; give each model a directory")};
  TRY(model::LoadBlocks(file, Part::kRows, "", state.parameters));
  TRY(state.optimizer->Follow(state.parameters));
  if (TRY(file.Meta("optimizer")) == state.optimizer->name()) {
    TRY(model::LoadBlocks(file, Part::kBeside, "beside.", state.parameters));
    TRY(model::LoadBlocks(file, Part::kRows, "state.", state.optimizer->state()));
    const std::string step = TRY(file.Meta("step"));
    state.optimizer->SetStep(std::strtoull(step.c_str(), nullptr, 10));
  } else {  // another update rule was chosen since: it begins with what was learned and remembers nothing
    env_.log.Warn("optimizer changed", "version", id, "now", state.optimizer->name());
  }
  auto description = TRY(data::Description::Load(file));
  state.moments = description.moments;
  state.target = description.target;
  return description;
}

Result<model::ModelConfig> Versions::ConfigOf(std::uint64_t id) const {
  return model::ModelConfig::FromJson(TRY(TRY(data::TensorFile::Read(env_.files, PathOf(id))).Meta("model")));
}

Result<std::string> Versions::LoadVitals(std::uint64_t id) const {
  const data::TensorFile file = TRY(data::TensorFile::Read(env_.files, VitalsPathOf(id)));
  TRY(CheckFormat(file, kVitalsFormat, VitalsPathOf(id)));
  TRY(InfoIn(file, VitalsPathOf(id), id));
  return file.Meta("vitals");
}

void Versions::Pin(std::uint64_t id, bool pinned) {
  const base::Lock lock(mutex_);
  if (const auto found = complete_.find(id); found != complete_.end()) found->second.pinned = pinned;
}

void Versions::PinOnly(const std::vector<std::uint64_t>& ids, std::uint64_t end) {
  const base::Lock lock(mutex_);
  for (auto& [id, info] : complete_)
    if (id < end) info.pinned = std::find(ids.begin(), ids.end(), id) != ids.end();
}

void Versions::Hold(std::uint64_t id, std::uint64_t by) {
  const base::Lock lock(mutex_);
  held_[by] = id;
}

std::uint64_t Versions::NeededFrom(std::uint64_t applied) const {
  const base::Lock lock(mutex_);
  for (const auto& [by, id] : held_)
    if (const auto found = complete_.find(id); found != complete_.end())
      applied = std::min(applied, found->second.applied);
  return applied;
}

void Versions::Forget(std::uint64_t id, const Error& why) {
  Damaged(PathOf(id), why);
  const base::Lock lock(mutex_);
  complete_.erase(id);
}

void Versions::Damaged(const std::string& path, const Error& why) {
  env_.log.Error("version damaged", "file", path, "reason", why.text, "advice", "another one is used");
  damaged_.fetch_add(1, std::memory_order_relaxed);
}

Result<void> Versions::Prune(std::size_t keep) {
  std::vector<std::uint64_t> free, gone;
  {
    const base::Lock lock(mutex_);
    const auto held = [this](std::uint64_t id) REQUIRES(mutex_) {
      return std::any_of(held_.begin(), held_.end(), [&](const auto& entry) { return entry.second == id; });
    };
    for (const auto& [id, info] : complete_)
      if (!info.pinned && !held(id)) free.push_back(id);
    keep = std::max<std::size_t>(keep, 1);
    while (free.size() > keep) {
      const auto victim = free.begin() + static_cast<std::ptrdiff_t>(LeastMissed(free));
      gone.push_back(*victim);
      complete_.erase(*victim);
      free.erase(victim);
    }
  }
  for (const std::uint64_t id : gone) {  // the vitals first: a model without them counts for nothing
    TRY(env_.files.Remove(VitalsPathOf(id)));
    TRY(env_.files.Remove(PathOf(id)));
  }
  return {};
}

std::optional<std::string> OptimizerKept(base::Files& files, const std::string& directory) {
  const auto paths = FilesIn(files, directory, ".model");
  if (!paths.ok()) return std::nullopt;
  for (auto path = paths.value().rbegin(); path != paths.value().rend(); ++path) {  // the newest first
    const auto file = data::TensorFile::Read(files, *path);
    if (!file.ok()) continue;
    if (auto name = file.value().Meta("optimizer"); name.ok()) return std::move(name).value();
  }
  return std::nullopt;
}

}  // namespace freshet::deploy
