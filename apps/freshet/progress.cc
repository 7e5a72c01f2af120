#include "progress.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace freshet::cli {
namespace {

std::string Column(const std::string& text, std::size_t width) {
  return Str(std::string(text.size() < width ? width - text.size() : 0, ' '), text, "  ");
}

}  // namespace

bool ErrorsAreSeen() {
  const char* const term = std::getenv("TERM");
  return isatty(2) == 1 && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

void WriteError(const std::string& text) { (void)!write(2, text.data(), text.size()); }

ProgressView::ProgressView(bool quiet, base::Clock& clock) : quiet_(quiet), terminal_(ErrorsAreSeen()), clock_(clock) {}

void ProgressView::Totals::Take(const train::Progress& progress) {
  if (progress.epoch != epoch) {
    loss_before = loss;
    weight_before = weight;
  }
  epoch = progress.epoch;
  loss = loss_before + progress.total_loss;
  weight = weight_before + progress.weight;
}

void ProgressView::Show(const train::Progress& progress) {
  totals_.Take(progress);
  curve_.Add(static_cast<double>(progress.rows), totals_.loss, totals_.weight);
  if (quiet_) return;
  if (terminal_) {
    const double now = base::Seconds(clock_.Now());
    if (now < next_draw_) return;
    next_draw_ = now + 0.1;
    DrawBar(progress);
  } else if (progress.rows >= next_rows_) {
    while (next_rows_ <= progress.rows) next_rows_ *= 2;
    WriteLine(progress);
  }
}

void ProgressView::DrawBar(const train::Progress& progress) {
  constexpr int kCells = 24;
  std::string bar;
  if (progress.fraction) {
    const int full = static_cast<int>(*progress.fraction * kCells);
    for (int i = 0; i < kCells; ++i) bar += i < full ? "━" : "─";
    bar += Str(" ", Fixed(*progress.fraction * 100, 0), " %");
  }
  const double rate = progress.seconds > 0 ? static_cast<double>(progress.rows) / progress.seconds : 0;
  WriteError(Str("\r\x1b[K", bar, "  epoch ", progress.epoch + 1, "/", progress.epochs, "  ", Grouped(progress.rows),
                 " rows  ", Grouped(static_cast<unsigned long long>(rate)), " rows/s  loss ",
                 Fixed(progress.mean_loss, 4)));
  bar_drawn_ = true;
}

void ProgressView::WriteLine(const train::Progress& progress) {
  if (!header_written_) WriteError(" average      since         rows    epoch\n    loss       last\n");
  header_written_ = true;
  const double weight = totals_.weight - weight_at_line_;
  const double since = weight > 0 ? (totals_.loss - loss_at_line_) / weight : progress.mean_loss;
  loss_at_line_ = totals_.loss;
  weight_at_line_ = totals_.weight;
  WriteError(Str(Column(Fixed(progress.mean_loss, 4), 8), Column(Fixed(since, 4), 8),
                 Column(Grouped(progress.rows), 10), Column(Str(progress.epoch + 1, "/", progress.epochs), 6), "\n"));
}

void ProgressView::Done() {
  if (bar_drawn_) WriteError("\r\x1b[K");
}

}  // namespace freshet::cli
