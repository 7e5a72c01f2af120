#include "deploy/versions.h"

#include <cstdio>
#include <nlohmann/json.hpp>

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
  const auto vitals = env.files.Glob(versions->directory_ + "/*.model.vitals");
  if (vitals.ok())
    for (const std::string& path : vitals.value()) {
      try {
        const auto file = data::TensorFile::Read(env.files, path);
        if (!file.ok()) {
          env.log.Error("version damaged", "reason", file.error().text);
          continue;
        }
        const VersionInfo info = InfoOf(Json::parse(TRY(file.value().Meta("version"))));
        if (env.files.Exists(versions->PathOf(info.id))) versions->complete_[info.id] = info;
      } catch (const std::exception& problem) {
        env.log.Error("version damaged", "file", path, "reason", problem.what());
      }
    }
  if (const auto drafts = env.files.Glob(versions->directory_ + "/*.draft"); drafts.ok())
    for (const std::string& path : drafts.value()) TRY(env.files.Remove(path));
  if (const auto models = env.files.Glob(versions->directory_ + "/*.model"); models.ok())
    for (const std::string& path : models.value())
      if (!env.files.Exists(path + ".vitals")) TRY(env.files.Remove(path));
  return versions;
}

Result<void> Versions::Save(const VersionInfo& info, const model::Model& model, const State& state,
                            const data::Description& description) {
  data::Metadata metadata;
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  metadata["format"] = "freshet model 1";
  metadata["model"] = model.config().ToJson();
  metadata["version"] = info.ToJson();
  metadata["step"] = Str(state.optimizer->step());
  model::AddBlocks(state.parameters, Part::kRows, "", tensors);
  model::AddBlocks(state.parameters, Part::kBeside, "beside.", tensors);
  model::AddBlocks(state.optimizer->state(), Part::kRows, "state.", tensors);
  data::Description with_moments = description;
  with_moments.moments = state.moments;
  with_moments.Save(metadata, tensors, storage);
  TRY(env_.faults.Hit("version.save"));
  return base::WriteAtomic(env_.files, PathOf(info.id),
                           [&](base::OutputFile& file) { return data::WriteTensors(file, tensors, metadata); });
}

Result<void> Versions::SaveVitals(const VersionInfo& info, const std::string& json) {
  TRY(env_.faults.Hit("version.vitals"));
  TRY(base::WriteAtomic(env_.files, VitalsPathOf(info.id), [&](base::OutputFile& file) {
    return data::WriteTensors(file, {}, {{"version", info.ToJson()}, {"vitals", json}});
  }));
  const std::lock_guard lock(mutex_);
  complete_[info.id] = info;
  return {};
}

std::vector<VersionInfo> Versions::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<VersionInfo> all;
  for (const auto& [id, info] : complete_) all.push_back(info);
  return all;
}

std::optional<VersionInfo> Versions::Find(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = complete_.find(id);
  return found == complete_.end() ? std::nullopt : std::optional(found->second);
}

Result<data::Description> Versions::Load(std::uint64_t id, const model::Model& model, State& state) const {
  const data::TensorFile file = TRY(data::TensorFile::Read(env_.files, PathOf(id)));
  if (TRY(file.Meta("model")) != model.config().ToJson())
    return Error{Code::kCorrupt, Str(PathOf(id), ": is a version of another model")};
  TRY(model::LoadBlocks(file, Part::kRows, "", state.parameters));
  TRY(model::LoadBlocks(file, Part::kBeside, "beside.", state.parameters));
  TRY(state.optimizer->Follow(state.parameters));
  TRY(model::LoadBlocks(file, Part::kRows, "state.", state.optimizer->state()));
  const std::string step = TRY(file.Meta("step"));
  state.optimizer->SetStep(std::strtoull(step.c_str(), nullptr, 10));
  auto description = TRY(data::Description::Load(file));
  state.moments = description.moments;
  return description;
}

Result<std::string> Versions::LoadVitals(std::uint64_t id) const {
  return TRY(data::TensorFile::Read(env_.files, VitalsPathOf(id))).Meta("vitals");
}

void Versions::Pin(std::uint64_t id, bool pinned) {
  const std::lock_guard lock(mutex_);
  if (const auto found = complete_.find(id); found != complete_.end()) found->second.pinned = pinned;
}

void Versions::Forget(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  complete_.erase(id);
}

Result<void> Versions::Prune(std::size_t keep) {
  std::vector<std::uint64_t> free;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, info] : complete_)
      if (!info.pinned) free.push_back(id);
    if (free.size() <= keep) return {};
    free.resize(free.size() - keep);
    for (const std::uint64_t id : free) complete_.erase(id);
  }
  for (const std::uint64_t id : free) {  // the vitals first: a model without them counts for nothing
    TRY(env_.files.Remove(VitalsPathOf(id)));
    TRY(env_.files.Remove(PathOf(id)));
  }
  return {};
}

}  // namespace freshet::deploy
