#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/library.h"
#include "cluster/memory_limit.h"

namespace partita::cluster {
namespace {

constexpr Bytes kGiB = Bytes{1} << 30;

MemoryLimit limit_of(const char* cluster, const MemoryRequest& request = {}) {
  return memory_limit(read_cluster(cluster), request);
}

std::string refusal(const char* cluster, const MemoryRequest& request) {
  try {
    limit_of(cluster, request);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MemoryLimit, AcceleratorsKeepAReserve) {
  MemoryLimit limit = limit_of("8xH100-80GB");
  EXPECT_EQ(limit.limit + limit.reserve, 80 * kGiB);
  EXPECT_NEAR(static_cast<double>(limit.limit) / kGiB, 75.2, 1e-6);
  EXPECT_EQ(to_text(limit), "75.2 GiB = 80.0 GiB less 6 % reserve");
}

TEST(MemoryLimit, CpusKeepNoneAndHaveWhatIsAskedFor) {
  EXPECT_EQ(limit_of("4xcpu"), (MemoryLimit{4 * kGiB, 0, 0, 4 * kGiB}));
  EXPECT_EQ(limit_of("4xcpu", {.memory = "16GiB"}).limit, 16 * kGiB);
  EXPECT_EQ(to_text(limit_of("4xcpu", {.memory = "2GiB"})), "2.0 GiB");
  EXPECT_EQ(limit_of("4xcpu", {.memory = "2GiB", .reserve = "25%"}).limit, 2 * kGiB - kGiB / 2);
}

TEST(MemoryLimit, IsTheLeastOfWhatIsAskedForAndWhatIsLeft) {
  EXPECT_EQ(limit_of("8xH100-80GB", {.memory = "40GiB"}).limit, 40 * kGiB);
  EXPECT_EQ(limit_of("8xH100-80GB", {.memory = "79GiB"}).limit, limit_of("8xH100-80GB").limit);
  EXPECT_EQ(limit_of("8xH100-80GB", {.memory = "79GiB", .reserve = "0"}).limit, 79 * kGiB);
  EXPECT_EQ(limit_of("8xH100-80GB", {.reserve = "4GiB"}).limit, 76 * kGiB);
  EXPECT_EQ(limit_of("8xH100-80GB", {.reserve = "12.5%"}).limit, 70 * kGiB);
}

// Whoever planned without a reserve is not told afterwards that the plan does not fit.
TEST(MemoryLimit, OfAPlanHoldsUnlessSomethingIsSaid) {
  EXPECT_EQ(limit_of("8xH100-80GB", {.planned = 80 * kGiB}).limit, 80 * kGiB);
  EXPECT_EQ(limit_of("8xH100-80GB", {.planned = 78 * kGiB}).reserve, 2 * kGiB);
  EXPECT_EQ(limit_of("8xH100-80GB", {.planned = 40 * kGiB}).limit, 40 * kGiB);
  EXPECT_EQ(limit_of("8xA100-40GB", {.planned = 80 * kGiB}).limit, 40 * kGiB);
  EXPECT_EQ(limit_of("8xH100-80GB", {.memory = "60GiB", .planned = 40 * kGiB}).limit, 60 * kGiB);
}

TEST(MemoryLimit, RefusesWhatCannotBe) {
  EXPECT_EQ(refusal("8xH100-80GB", {.memory = "200GiB"}),
            "--memory 200GiB: a H100-80GB has 80.0 GiB; leave --memory out, or give at most that");
  EXPECT_EQ(refusal("8xH100-80GB", {.reserve = "100%"}),
            "--reserve 100%: nothing is left of the 80.0 GiB of a H100-80GB; write for example 8%");
  EXPECT_EQ(refusal("8xH100-80GB", {.memory = "80"}),
            "--memory: \"80\" without a unit is 80 bytes; write 80GiB");
  EXPECT_EQ(refusal("8xH100-80GB", {.reserve = "-3%"}),
            "--reserve: \"-3%\" is not a share; write for example 8%, 4GiB or 0");
}

TEST(MemoryLimit, SaysByHowMuchAPlanDoesNotFit) {
  EXPECT_EQ(show_fit(limit_of("8xH100-80GB"), 345 * kGiB + kGiB / 5),
            "does not fit: 270.0 GiB over 75.2 GiB");
  EXPECT_EQ(show_fit(limit_of("8xH100-80GB"), 70 * kGiB), "fits 75.2 GiB");
}

}  // namespace
}  // namespace partita::cluster
