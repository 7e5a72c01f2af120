// Labels that no class has: they become classes, where that is wanted, and the model gets wider.

#include "base/option.h"
#include "deploy/control_records.h"
#include "deploy/deployment.h"
#include "model/more_classes.h"

namespace freshet::deploy {

Result<void> Deployment::UseModel(std::unique_ptr<model::Model> model) {
  if (models_ != nullptr) TRY(models_->TakeMoreClasses(*model));
  made_models_.push_back(std::move(model));
  model_ = made_models_.back().get();
  shown_model_.store(model_, std::memory_order_release);
  return {};
}

// Says at the start, not when the first one comes, where there can be no new classes.
Result<void> Deployment::CheckNewClasses() {
  const std::size_t names = models_->description().labels.names.size();
  most_classes_ = names + options_.new_classes;
  if (options_.new_classes == 0) return {};
  (void)TRY(model::WithClasses(*model_, most_classes_));
  if (names == model_->scores()) return {};
  return Error{Code::kInvalid, Str("the model cannot learn new classes: its ", model_->scores(), " classes have ",
                                   names, " names, expected one each")};
}

// Each is a record of its own, before those of the rows that brought it: they hold its number.
void Deployment::AddClasses(Request& request) {
  for (const data::NewLabel& fresh : request.new_labels) {
    const data::Labels& labels = models_->description().labels;
    if (labels.Map(fresh.name) == data::Labels::kUnknown) {
      if (labels.names.size() >= most_classes_) {
        request.error = Error{Code::kBadInput, Str("row ", fresh.row, ": label ", Quoted(fresh.name), ", expected ",
                                                   labels.Expected(), "; there is no room for more new classes than ",
                                                   options_.new_classes, " (", Option("new-classes"), ")")};
        return;
      }
      if (auto added = AddClass(fresh.name); !added.ok()) {
        Problem(added.error());
        request.error = added.error();
        return;
      }
    }
    const float label = labels.Map(fresh.name);
    (request.kind == Request::Kind::kFeedback ? request.labels[fresh.row] : request.rows.labels[fresh.row]) = label;
  }
}

Result<void> Deployment::AddClass(const std::string& name) {
  const std::string json = Json({{"label", name}, {"class", model_->scores()}}).dump();
  const std::uint64_t sequence = TRY(Log(RecordKind::kClass, json));
  TRY(ApplyClass(json));
  env_.log.Info("new class", "label", name, "sequence", sequence, "classes", model_->scores());
  return {};
}

// What is being trained or copied knows too few classes: it is given up.
Result<void> Deployment::ApplyClass(const std::string& text) {
  const std::string name = Json::parse(text).at("label");
  data::Labels& labels = models_->description().labels;
  if (labels.Map(name) != data::Labels::kUnknown) return {};
  auto wider = TRY(model::WithClasses(*model_, model_->scores() + 1));
  DropJob();
  starting_.reset();
  labels.names.push_back(name);
  labels.Index();
  auto used = UseModel(std::move(wider));
  if (used.ok()) return used;
  labels.names.pop_back();
  labels.Index();
  return used;
}

// The record that brought a class was lost: another takes its place, so that those after it keep their numbers.
Result<void> Deployment::MeetLabel(float label) {
  if (task_ != data::Labels::Kind::kClasses) return {};
  while (label >= static_cast<float>(model_->scores()))
    TRY(ApplyClass(Json({{"label", Str("(lost ", model_->scores(), ")")}}).dump()));
  return {};
}

// A version may have been made before a class came, and the newest one after classes that the model file does not have.
Result<Deployment::Loaded> Deployment::LoadVersion(std::uint64_t id) {
  Loaded loaded{TRY(models_->NewState()), {}};
  auto description = versions_->Load(id, *model_, *loaded.state);
  if (description.ok() || description.error().code != Code::kInvalid) {
    loaded.description = TRY(std::move(description));
    return loaded;
  }
  auto other = TRY(model::Model::Make(TRY(versions_->ConfigOf(id))));
  const bool fewer = other->scores() < model_->scores();
  if (other->scores() == model_->scores()) return description.error();
  auto same = fewer ? model::WithClasses(*other, model_->scores()) : model::WithClasses(*model_, other->scores());
  const auto& expected = fewer ? model_->config() : other->config();
  if (!same.ok() || same.value()->config().ToJson() != expected.ToJson()) return description.error();
  if (!fewer) {  // the model gets wider only by a version that is whole
    loaded.state = TRY(models_->NewState(*same.value()));
    loaded.description = TRY(versions_->Load(id, *same.value(), *loaded.state));
    TRY(UseModel(std::move(same).value()));
    return loaded;
  }
  const auto narrow = TRY(models_->NewState(*other));
  loaded.description = TRY(versions_->Load(id, *other, *narrow));
  TRY(loaded.state->TakeFewerClasses(*narrow));
  return loaded;
}

}  // namespace freshet::deploy
