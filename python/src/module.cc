#include "model.h"
#include "service.h"
#include "tables.h"
#include "training.h"

NB_MODULE(_native, module) {
  freshet::python::BindTables(module);
  freshet::python::BindModel(module);
  freshet::python::BindTraining(module);
  freshet::python::BindService(module);
}
