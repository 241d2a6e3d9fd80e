// The outputs of a model for each sample, as JSON, as CSV or as arrays of NumPy. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "base/not_copied.h"
#include "host/cli/infer/classes.h"

namespace tenon::cli {

// What the lines of predictions have.
struct PredictionForm {
  std::vector<std::string> names;    // of the outputs
  std::vector<ClassNames> classes;   // of each output
  bool best = false;                 // the name of the class with the largest score, too
  std::vector<std::string> columns;  // of the data, copied
  // The number of the record that a sample is, and the text of one of `columns` there.
  std::function<int64_t(int64_t sample)> record;
  std::function<std::string(int64_t sample, const std::string& column)> text;
};

class PredictionWriter : base::NotCopied {
 public:
  explicit PredictionWriter(PredictionForm form) : form_(std::move(form)) {}
  virtual ~PredictionWriter() = default;

  // Writes the outputs of the next samples. Throws Failure.
  void write(const std::vector<Array>& outputs);
  // Ends the output. Without a call a file is not there.
  virtual void finish() {}
  [[nodiscard]] int64_t samples() const { return sample_; }
  // The first records between those of the samples, at most kMostSkipped, and the record behind the last sample.
  static constexpr size_t kMostSkipped = 10;
  [[nodiscard]] const std::vector<int64_t>& skipped() const { return skipped_; }
  [[nodiscard]] int64_t next_record() const { return next_record_; }

 protected:
  virtual void write_samples(const std::vector<Array>& outputs, const std::vector<int64_t>& records) = 0;
  [[nodiscard]] const PredictionForm& form() const { return form_; }

 private:
  PredictionForm form_;
  int64_t sample_ = 0, next_record_ = 0;
  std::vector<int64_t> skipped_;
};

// A line for each sample, to `out`, which must outlive the result. csv: with a heading before; else JSON. place: where
// the lines go, for messages.
[[nodiscard]] std::unique_ptr<PredictionWriter> text_writer(PredictionForm form, bool csv, std::ostream& out,
                                                            const std::string& place = "standard output");
// A file "p.npy" of one output, of several "p.NAME.npy" each; if records are left out, "p.sample.npy" has the numbers
// of those that are not. The files appear when they are complete.
[[nodiscard]] std::unique_ptr<PredictionWriter> numpy_writer(PredictionForm form, const std::string& path);

}  // namespace tenon::cli
