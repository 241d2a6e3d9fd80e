// Jobs that `tenon new job` writes for tables train as they are, and learn what the tables hold.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "tests/new_job/new_job.h"

namespace tenon_tests {

namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string text(double number) { return std::to_string(number); }

class Tables : public NewJobTest {
 protected:
  // Three kinds of flowers by two sizes of different units, a constant column and one that numbers the rows.
  void flowers() const {
    const char* const kinds[] = {"setosa", "versicolor", "virginica"};
    table("flowers.csv", "row,length,width,place,kind", 150, [&](uint64_t i) {
      const double kind = static_cast<double>(i % 3);
      return std::to_string(i + 1) + "," + text(10 * kind + 4 * drawn(2 * i)) + "," +
             text(0.001 * (kind + drawn(2 * i + 1))) + ",garden," + kinds[i % 3];
    });
  }
  // A price by an area, a district of many, and an age with gaps.
  void houses() const {
    table("houses.csv", "area;district;age;price", 400, [](uint64_t i) {
      const double area = 50 + 100 * drawn(3 * i), age = 80 * drawn(3 * i + 1);
      const uint64_t district = i * 7 % 13;
      const double price = 2000 * area + 5000 * static_cast<double>(district) - 500 * age;
      return text(area) + ";D" + std::to_string(district) + ";" + (i % 9 == 0 ? "NA" : text(age)) + ";" + text(price);
    });
  }
};

TEST_F(Tables, SeveralClasses) {
  flowers();
  EXPECT_GT(trained({"flowers.csv", "--target", "kind"}, "accuracy"), 0.9);
  const std::string job = read("new.toml");
  EXPECT_THAT(job, HasSubstr("numbers = length, width: f32 missing mean"));
  EXPECT_THAT(job, HasSubstr("label = kind: category missing skip"));
  EXPECT_THAT(job, HasSubstr("row: it numbers the rows"));
  EXPECT_THAT(job, HasSubstr("place: it is \"garden\" in every row"));
  EXPECT_THAT(job, HasSubstr("would be right in 33.3 %"));
  EXPECT_THAT(job, HasSubstr("macro_precision_recall"));
  // New rows have no label; the names of the classes come back.
  write("new.csv", "width,length\n0.0005,2\n0.0025,22\n");
  const std::string out = done(run_infer, {"new.toml", "--data", "new.csv", "--output", "class"}).out;
  EXPECT_THAT(out, ContainsRegex("\"class\":0,\"name\":\"setosa\""));
  EXPECT_THAT(out, ContainsRegex("\"class\":2,\"name\":\"virginica\""));
}

TEST_F(Tables, Quantity) {
  houses();
  EXPECT_GT(trained({"houses.csv", "--target", "price"}, "r2"), 0.9);
  const std::string job = read("new.toml");
  EXPECT_THAT(job, HasSubstr("delimiter = \";\""));
  EXPECT_THAT(job, HasSubstr("gaps = age: f32 missing mean indicator"));
  EXPECT_THAT(job, HasSubstr("missing_texts = [\"NA\"]"));
  EXPECT_THAT(job, HasSubstr("district: category least 2 most 13 missing value"));
  EXPECT_THAT(job, HasSubstr("label = price: f32 missing skip"));
  // A district that is new, and an age that is missing.
  write("new.csv", "area;district;age\n100;D5;40\n100;D99;NA\n");
  const std::string out = done(run_infer, {"new.toml", "--data", "new.csv", "--output", "prediction"}).out;
  EXPECT_EQ(lines_of(out).size(), 2u);
}

TEST_F(Tables, TwoClassesByNumbers) {
  table("sick.csv", "age\tdose\tsick", 300, [](uint64_t i) {
    const double age = 90 * drawn(2 * i), dose = drawn(2 * i + 1);
    return text(age) + "\t" + text(dose) + "\t" + (age / 90 + dose > 1.3 ? "1" : "0");
  });
  EXPECT_GT(trained({"sick.csv", "--target", "sick"}, "auc"), 0.9);
  EXPECT_THAT(read("new.toml"), HasSubstr("delimiter = \"\\t\""));
}

TEST_F(Tables, WordsOfATextColumn) {
  const char* const good[] = {"lovely", "great", "fine"};
  const char* const bad[] = {"awful", "boring", "poor"};
  table("reviews.csv", "text,verdict", 300, [&](uint64_t i) {
    const bool is_good = i % 2 == 0;
    const char* const word = (is_good ? good : bad)[i / 2 % 3];
    return "\"The film number " + std::to_string(i) + ", it was " + word + "!\"," + (is_good ? "good" : "bad");
  });
  EXPECT_GT(trained({"reviews.csv", "--target", "verdict"}, "accuracy"), 0.95);
  EXPECT_THAT(read("new.toml"), ContainsRegex("'?\"?text: words lower least 2 most [0-9]+"));
}

TEST_F(Tables, DatesListsAndTails) {
  table("sales.csv", "day,tags,income,units", 400, [](uint64_t i) {
    const uint64_t month = i % 12 + 1;
    const char* const tags[] = {"red|new", "blue", "red|old|big", "new|blue|small"};
    const double income = std::exp(6 * drawn(i) * drawn(i + 1000));
    const double units = 10 * static_cast<double>(month) + (i % 4 == 0 ? 50 : 0) + 20 * std::log(income);
    return std::to_string(i % 28 + 1) + "." + std::to_string(month) + ".202" + std::to_string(i % 3) + "," +
           tags[i % 4] + "," + text(income) + "," + text(units);
  });
  EXPECT_GT(trained({"sales.csv", "--target", "units"}, "r2"), 0.8);
  const std::string job = read("new.toml");
  EXPECT_THAT(job, HasSubstr("day: date(%d.%m.%Y) year month day weekday missing value indicator"));
  EXPECT_THAT(job, HasSubstr("tails = income: f32 missing median"));
}

TEST_F(Tables, ListsOfCategories) {
  table("films.csv", "genres,score", 400, [](uint64_t i) {
    std::string genres;
    double score = 0;
    for (uint64_t k = 0; k < 8; ++k) {
      if (drawn(8 * i + k) > 0.4) continue;
      genres += (genres.empty() ? "G" : "|G") + std::to_string(k);
      score += k < 4 ? 1 : -1;
    }
    return genres + "," + text(score);
  });
  EXPECT_GT(trained({"films.csv", "--target", "score", "--task", "regression"}, "r2"), 0.5);
  EXPECT_THAT(read("new.toml"), HasSubstr("genres: category list(|) least 2 most 8"));
}

TEST_F(Tables, SameBytesForTheSameData) {
  houses();
  const std::string first = job_of({"houses.csv", "--target", "price"});
  EXPECT_EQ(first, job_of({"houses.csv", "--target", "price"}));
  EXPECT_THAT(first, Not(HasSubstr("\t")));
}

TEST_F(Tables, WithoutAHeader) {
  table("plain.csv", "5.1,3.5,a", 60, [](uint64_t i) {
    return text(static_cast<double>(i % 2) + drawn(i)) + "," + text(drawn(i + 99)) + (i % 2 == 0 ? ",a" : ",b");
  });
  EXPECT_GT(trained({"plain.csv", "--target", "c2"}, "accuracy"), 0.6);
  EXPECT_THAT(read("new.toml"), HasSubstr("header = false"));
}

TEST_F(Tables, OfOtherFormsOfNumbersAndNames) {
  table("amounts.csv", "\"a, b\";Größe;\"x:y\";art", 80, [](uint64_t i) {
    return "\"1.0" + std::to_string(10 + i % 80) + ",5\";" + std::to_string(i % 7) + "," + std::to_string(i % 10) +
           ";" + std::to_string(drawn(i)).replace(1, 1, ",") + (i % 2 == 0 ? ";süß" : ";herb");
  });
  const std::string job = job_of({"amounts.csv", "--target", "art"});
  EXPECT_THAT(job, HasSubstr("decimal = \",\""));
  EXPECT_THAT(job, HasSubstr("thousands = \".\""));
  EXPECT_THAT(job, HasSubstr(R"("a, b"..)"));
  (void)trained({"amounts.csv", "--target", "art"}, "accuracy");
}

TEST_F(Tables, InLatin1AndCompressed) {
  table("old.csv", "stadt,zahl,art", 60, [](uint64_t i) {
    return std::string(i % 3 == 0 ? "K\xF6ln" : "Bonn") + "," + text(drawn(i)) + (i % 3 == 0 ? ",x" : ",y");
  });
  ASSERT_EQ(shell("gzip old.csv").exit, 0);
  EXPECT_GT(trained({"old.csv.gz", "--target", "art"}, "accuracy"), 0.9);
  EXPECT_THAT(read("new.toml"), HasSubstr("encoding = \"latin1\""));
}

TEST_F(Tables, OfSeveralFiles) {
  const auto row = [](uint64_t i) { return text(drawn(i)) + "," + (drawn(i) > 0.5 ? "yes" : "no"); };
  table("one.csv", "x,answer", 50, row);
  write("two.csv", "answer,x\nno,0.1\nyes,0.9\n");
  EXPECT_GT(trained({"one.csv", "two.csv", "--target", "answer"}, "accuracy"), 0.8);
  EXPECT_THAT(job_of({"one.csv", "two.csv", "--target", "answer"}), HasSubstr("52 rows"));
}

TEST_F(Tables, RowsWithoutATargetAreCounted) {
  table("gaps.csv", "x,answer", 60, [](uint64_t i) {
    const std::string answer = drawn(i) > 0.5 ? "yes" : "no";
    return text(drawn(i)) + "," + (i < 7 ? "" : answer);
  });
  EXPECT_THAT(job_of({"gaps.csv", "--target", "answer"}), HasSubstr("missing in 7 rows, which are left out"));
  EXPECT_GT(trained({"gaps.csv", "--target", "answer"}, "accuracy"), 0.8);
}

TEST_F(Tables, TextsAmongNumbersMeanMissing) {
  table("mixed.csv", "x,kind,y", 100, [](uint64_t i) {
    const std::string kind = i % 4 == 0 ? "unknown" : "known";
    return (i % 10 == 3 ? "unknown" : text(drawn(i))) + "," + kind + "," + text(2 * drawn(i));
  });
  const std::string job = job_of({"mixed.csv", "--target", "y"});
  EXPECT_THAT(job, HasSubstr("missing_texts = [\"unknown\"]"));
  EXPECT_THAT(job, HasSubstr("gaps = x: f32 missing mean indicator"));
  EXPECT_THAT(job, HasSubstr("kind: category least 2 most 1 missing value"));
  EXPECT_GT(trained({"mixed.csv", "--target", "y"}, "r2"), 0.5);
}

TEST_F(Tables, ManyColumnsAreARange) {
  std::string header = "label";
  for (int k = 0; k < 100; ++k) header += ",p" + std::to_string(k);
  table("wide.csv", header, 60, [](uint64_t i) {
    std::string row = i % 2 == 0 ? "even" : "odd";
    for (uint64_t k = 0; k < 100; ++k)
      row += "," + text(drawn(100 * i + k) + (k == 7 ? static_cast<double>(i % 2) : 0.0));
    return row;
  });
  const std::string job = job_of({"wide.csv", "--target", "label"});
  EXPECT_THAT(job, HasSubstr("numbers = p0..p99: f32"));
  EXPECT_THAT(job, HasSubstr("and 60 more"));
}

}  // namespace

}  // namespace tenon_tests
