#pragma once

#include <string>

#include "chart.h"
#include "train/trainer.h"

namespace freshet::cli {

// Is standard error a terminal on which lines can be redrawn?
bool ErrorsAreSeen();
void WriteError(const std::string& text);

// Shows how training goes, on standard error: a bar that is redrawn on a terminal, elsewhere one line whenever the
// number of rows has doubled. Also gathers the learning curve.
class ProgressView {
 public:
  ProgressView(bool quiet, base::Clock& clock);
  void Show(const train::Progress& progress);
  void Done();  // ends the bar's line
  const Curve& curve() const { return curve_; }

 private:
  void DrawBar(const train::Progress& progress);
  void WriteLine(const train::Progress& progress);

  const bool quiet_, terminal_;
  base::Clock& clock_;
  Curve curve_;
  // Loss and weight of all rows so far, those of this epoch, of which progress tells, among them.
  struct Totals {
    int epoch = 0;
    double loss = 0, weight = 0, loss_before = 0, weight_before = 0;
    void Take(const train::Progress& progress);
  };
  Totals totals_;
  std::uint64_t next_rows_ = 1000;
  double next_draw_ = 0;
  double loss_at_line_ = 0, weight_at_line_ = 0;
  bool header_written_ = false, bar_drawn_ = false;
};

}  // namespace freshet::cli
