// The native model as Python sees it; the package puts its own class around it.

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "attend.h"
#include "base/cores.h"
#include "base/thread_pool.h"
#include "data/row_builder.h"
#include "data/table.h"
#include "model.h"
#include "model/onnx/export.h"
#include "model/onnx/write.h"
#include "options.h"
#include "tables.h"
#include "training.h"
#include "world.h"

namespace nb = nanobind;

namespace freshet::python {
namespace {

using Floats = nb::ndarray<nb::numpy, float>;

Floats ArrayOf(std::vector<float> values, std::size_t rows, std::size_t width) {
  auto* const kept = new std::vector<float>(std::move(values));
  const nb::capsule owner(kept, [](void* at) noexcept { delete static_cast<std::vector<float>*>(at); });
  return Floats(kept->data(), {rows, width}, owner);
}

// Small inputs are not worth a thread.
bool IsSmall(const data::Input& input) {
  constexpr std::uint64_t kFew = 200'000;  // numbers
  return input.table != nullptr && input.table->rows() * input.table->numbers_of_row() <= kFew;
}

// Calls `work` with an env to do it in and a flag that stops it: at once, or attended with threads.
template <class T, class F>
T Do(const data::Input& input, int threads, F work) {
  World& world = World::Get();
  std::atomic<bool> stop{false};
  if (IsSmall(input)) {
    base::InlineExecutor executor;
    std::optional<Result<T>> result;
    {
      const nb::gil_scoped_release released;
      result = work(world.env(executor), &stop);
    }
    return ValueOf(*std::move(result));
  }
  return Attended<T>(stop, {}, [&]() -> Result<T> {
    base::SystemClock clock;
    base::ThreadPool pool(threads > 0 ? threads : base::AvailableCores(), &clock);
    return work(world.env(pool), &stop);
  });
}

data::Input Scoring(nb::handle source) {
  data::Input input = InputOf(source);
  input.labelled = false;
  input.grow = false;
  return input;
}

Floats Predict(Model& model, nb::handle source, bool link, int threads) {
  const data::Input input = Scoring(source);
  auto scores = Do<std::vector<float>>(input, threads, [&](const base::Env& env, const std::atomic<bool>* stop) {
    return model.Predict(env, input, link, stop);
  });
  const std::size_t width = model.model().scores(), rows = scores.size() / width;
  return ArrayOf(std::move(scores), rows, width);
}

nb::dict Evaluate(Model& model, nb::handle source, int threads) {
  data::Input input = InputOf(source);
  input.grow = false;
  input.labelled = model.model().Supervised();
  const auto evaluation = Do<train::Evaluation>(
      input, threads,
      [&](const base::Env& env, const std::atomic<bool>* stop) { return model.Evaluate(env, input, stop); });
  return DictOf(evaluation, model.model().loss());
}

double Update(Model& model, nb::handle source, int threads) {
  data::Input input = InputOf(source);
  input.labelled = model.model().Supervised();
  return Do<double>(input, threads, [&](const base::Env& env, const std::atomic<bool>* stop) {
    return model.Update(env, input, stop);
  });
}

float LabelOf(Model& model, nb::handle label) {
  if (PyUnicode_Check(label.ptr()))
    return ValueOf(model.builder().Label(std::string_view(nb::cast<std::string>(label))));
  const double number = PyFloat_AsDouble(label.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return ValueOf(model.builder().Label(number));
}

double UpdateRow(Model& model, const nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>& row,
                 nb::handle label, float weight) {
  return ValueOf(model.UpdateRow({row.data(), row.size()}, LabelOf(model, label), weight));
}

double UpdateDoubles(Model& model, const nb::ndarray<const double, nb::ndim<1>, nb::device::cpu>& row, nb::handle label,
                     float weight) {
  thread_local std::vector<float> numbers;
  numbers.resize(row.size());
  const auto view = row.view();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(view(i));
  return ValueOf(model.UpdateRow(numbers, LabelOf(model, label), weight));
}

nb::bytes ToBytes(Model& model) {
  const std::string bytes = ValueOf(model.ToBytes());
  return nb::bytes(bytes.data(), bytes.size());
}

std::unique_ptr<Model> FromBytes(const nb::bytes& bytes) {
  return ValueOf(Model::FromBytes(std::string(bytes.c_str(), bytes.size())));
}

void ToOnnx(Model& model, const std::string& path, bool ml) {
  World& world = World::Get();
  const auto write = [&]() -> Result<void> {
    const auto copy = TRY(model.Copy(world.memory()));
    const auto exported = TRY(model::onnx::Export(copy, {.ml = ml}));
    return base::WriteAtomic(world.files(), path,
                             [&](base::OutputFile& file) { return model::onnx::Write(exported.document, file); });
  };
  ValueOf(write());
}

nb::list Blocks(Model& model) {
  nb::list out;
  for (auto& block : model.Blocks())
    out.append(nb::make_tuple(block.name, nb::cast(ArrayOf(std::move(block.values), block.rows, block.width))));
  return out;
}

// How raw numbers become those a model sees, (x - shift) * scale, and its scores those of the data, s * deviation + mean.
nb::dict Scaling(Model& model) {
  model.Settle();
  const data::Description& description = model.description();
  nb::list shift, scale;
  if (description.standardise) {
    const std::vector<double> saved = description.moments.Save();  // … shifts, scales, one number more
    const std::size_t columns = description.moments.columns(), scales = saved.size() - 1 - columns;
    for (std::size_t j = 0; j < columns; ++j) {
      shift.append(saved[scales - columns + j]);
      scale.append(saved[scales + j]);
    }
  }
  nb::dict out;
  out["shift"] = shift;
  out["scale"] = scale;
  out["mean"] = description.target.mean();
  out["deviation"] = description.target.deviation();
  return out;
}

void SetLearning(Model& model, const nb::dict& options) {
  train::Learning learning{.use = train::Learning::Use::kReplay};
  base::Settings settings;
  settings.Group("Learning");
  learning.RegisterLearning(settings);
  SetOptions(options, settings);
  model.SetLearning(std::move(learning));
}

}  // namespace

void BindModel(nb::module_& module) {
  nb::class_<Model>(module, "Model")
      .def_static(
          "load", [](const std::string& path) { return ValueOf(Model::Load(World::Get().files(), path)); },
          nb::arg("path"))
      .def_static("from_bytes", &FromBytes, nb::arg("bytes"))
      .def(
          "save", [](Model& model, const std::string& path) { ValueOf(model.Save(World::Get().files(), path)); },
          nb::arg("path"))
      .def("to_bytes", &ToBytes)
      .def("to_onnx", &ToOnnx, nb::arg("path"), nb::arg("ml"))
      .def("predict", &Predict, nb::arg("source"), nb::arg("link"), nb::arg("threads"))
      .def("evaluate", &Evaluate, nb::arg("source"), nb::arg("threads"))
      .def("update", &Update, nb::arg("source"), nb::arg("threads"))
      .def("update_row", &UpdateRow, nb::arg("row").noconvert(), nb::arg("label"), nb::arg("weight") = 1.0f)
      .def("update_row", &UpdateDoubles, nb::arg("row").noconvert(), nb::arg("label"), nb::arg("weight") = 1.0f)
      .def(
          "recommend",
          [](Model& model, const std::string& user, std::size_t count) {
            return ValueOf(model.Recommend(user, count));
          },
          nb::arg("user"), nb::arg("count"))
      .def("blocks", &Blocks)
      .def("scaling", &Scaling)
      .def("set_learning", &SetLearning, nb::arg("options"))
      .def_prop_ro("rows", &Model::rows)
      .def_prop_ro("kind", [](const Model& model) { return model.model().config().kind; })
      .def_prop_ro("loss", [](const Model& model) { return std::string(model.model().loss().name()); })
      .def_prop_ro("supervised", [](const Model& model) { return model.model().Supervised(); })
      .def_prop_ro("clusters", [](const Model& model) { return model.model().traits().answers_clusters; })
      .def_prop_ro("classes",
                   [](Model& model) {
                     const data::Labels& labels = model.description().labels;
                     const bool real = labels.kind == data::Labels::Kind::kReal;
                     return real ? std::vector<std::string>() : labels.names;
                   })
      .def_prop_ro("config", [](const Model& model) { return model.model().config().ToJson(); })
      .def_prop_ro("input", [](Model& model) { return model.description().ToJson(); });
}

}  // namespace freshet::python
