#pragma once

#include <nanobind/nanobind.h>

#include "data/open.h"
#include "model/loss.h"
#include "train/evaluation.h"

namespace freshet::python {

// Rows as Python gives them: a native table, or a list of paths.
data::Input InputOf(nanobind::handle source);

// What `evaluation` says of a model with this loss, as the command line calls it.
nanobind::dict DictOf(const train::Evaluation& evaluation, const model::Loss& loss);

void BindTraining(nanobind::module_& module);

}  // namespace freshet::python
