// What the machine allows: reading memory, multiply-adds, and the BLAS that others build on.
#include <dlfcn.h>
#include <fmt/format.h>
#include <hwy/aligned_allocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "bench/contestant.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/limits.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;

double read(const double* x, std::size_t n) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d);
  auto b = a;
  auto c = a;
  auto e = a;
  for (std::size_t i = 0; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, hn::Load(d, x + i));
    b = hn::Add(b, hn::Load(d, x + i + lanes));
    c = hn::Add(c, hn::Load(d, x + i + 2 * lanes));
    e = hn::Add(e, hn::Load(d, x + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// Twelve sums side by side: more than a processor can have under way. They start differently, or the
// compiler would see that they are equal. Returns the operations per turn of the loop; `numbers`, at least
// twelve, keep the compiler from dropping the work.
double multiply_add(std::size_t turns, double* numbers) {
  const D d;
  const auto factor = hn::Set(d, 0.999999);
  const auto term = hn::Set(d, 1e-9);
  auto a0 = hn::Set(d, numbers[0]), a1 = hn::Set(d, numbers[1]), a2 = hn::Set(d, numbers[2]);
  auto a3 = hn::Set(d, numbers[3]), a4 = hn::Set(d, numbers[4]), a5 = hn::Set(d, numbers[5]);
  auto b0 = hn::Set(d, numbers[6]), b1 = hn::Set(d, numbers[7]), b2 = hn::Set(d, numbers[8]);
  auto b3 = hn::Set(d, numbers[9]), b4 = hn::Set(d, numbers[10]), b5 = hn::Set(d, numbers[11]);
  for (std::size_t i = 0; i < turns; ++i) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    a4 = hn::MulAdd(a4, factor, term);
    a5 = hn::MulAdd(a5, factor, term);
    b0 = hn::MulAdd(b0, factor, term);
    b1 = hn::MulAdd(b1, factor, term);
    b2 = hn::MulAdd(b2, factor, term);
    b3 = hn::MulAdd(b3, factor, term);
    b4 = hn::MulAdd(b4, factor, term);
    b5 = hn::MulAdd(b5, factor, term);
  }
  const auto a = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const auto b = hn::Add(hn::Add(hn::Add(b0, b1), hn::Add(b2, b3)), hn::Add(b4, b5));
  numbers[0] = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  return 2.0 * 12 * static_cast<double>(hn::Lanes(d));
}

}  // namespace
}  // namespace starfold::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::bench {

HWY_EXPORT(read);
HWY_EXPORT(multiply_add);

namespace {

// Memory as good as it gets: on large pages.
class Numbers {
 public:
  explicit Numbers(std::size_t size) : size_(size) {
    constexpr std::size_t page = std::size_t{1} << 21U;
    bytes_ = (size * sizeof(double) + page - 1) / page * page;
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    madvise(memory, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<double*>(memory);
    for (std::size_t i = 0; i < size; ++i) data_[i] = static_cast<double>(i % 8191) / 4096 - 1;
  }
  ~Numbers() { munmap(data_, bytes_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  const double* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::size_t bytes_ = 0;
  double* data_ = nullptr;
};

double read_seconds(const Numbers& numbers, int threads) {
  std::vector<double> sums(static_cast<std::size_t>(threads));
  const std::size_t share = numbers.size() / static_cast<std::size_t>(threads) / 64 * 64;
  const Clock::time_point start = Clock::now();
  on_threads(threads, [&](int t) {
    const auto thread = static_cast<std::size_t>(t);
    sums[thread] = HWY_DYNAMIC_DISPATCH(read)(numbers.data() + thread * share, share);
  });
  const double seconds = since(start);
  if (sums.front() == 0.123) throw std::runtime_error("the sum was not to be dropped");
  return seconds;
}

// A threaded OpenBLAS, loaded by hand: Starfold itself is linked with the serial one. The builds that
// come with NumPy and SciPy have their own names, and NumPy's takes 64-bit sizes.
class ThreadedBlas {
 public:
  ThreadedBlas(const std::string& path, int threads) {
    if (path.empty()) throw std::runtime_error("no threaded OpenBLAS; bench/setup brings NumPy's");
    // Deep binding: its inner calls must not end in the serial one.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == nullptr) throw std::runtime_error(dlerror());
    if (void* wide = dlsym(library, "scipy_cblas_dsyrk64_")) {
      wide_ = reinterpret_cast<Dsyrk<std::int64_t>>(wide);
      set_threads(dlsym(library, "scipy_openblas_set_num_threads64_"), threads);
      return;
    }
    for (const std::string prefix : {"scipy_", ""}) {
      void* narrow = dlsym(library, (prefix + "cblas_dsyrk").c_str());
      if (narrow == nullptr) continue;
      narrow_ = reinterpret_cast<Dsyrk<int>>(narrow);
      set_threads(dlsym(library, (prefix + "openblas_set_num_threads").c_str()), threads);
      return;
    }
    throw std::runtime_error(path + " has no dsyrk");
  }

  // out += x' x for records in rows (row-major), or with `by_column` in columns.
  void dsyrk(bool by_column, std::int64_t records, std::int64_t columns, const double* x,
             double* out) const {
    constexpr int row_major = 101;
    constexpr int column_major = 102;
    constexpr int upper = 121;
    constexpr int transpose = 112;
    const int order = by_column ? column_major : row_major;
    const std::int64_t leading = by_column ? records : columns;
    if (wide_ != nullptr) {
      wide_(order, upper, transpose, columns, records, 1, x, leading, 0, out, columns);
    } else {
      narrow_(order, upper, transpose, static_cast<int>(columns), static_cast<int>(records), 1, x,
              static_cast<int>(leading), 0, out, static_cast<int>(columns));
    }
  }

 private:
  template <typename Int>
  using Dsyrk = void (*)(int, int, int, Int, Int, double, const double*, Int, double, double*, Int);

  static void set_threads(void* function, int threads) {
    if (function == nullptr) throw std::runtime_error("this OpenBLAS has no threads");
    reinterpret_cast<void (*)(int)>(function)(threads);
  }

  Dsyrk<std::int64_t> wide_ = nullptr;
  Dsyrk<int> narrow_ = nullptr;
};

}  // namespace

Contestant make_read(const Arguments& arguments) {
  auto numbers = std::make_shared<Numbers>(static_cast<std::size_t>(arguments.number("numbers")));
  const int threads = static_cast<int>(arguments.number("threads"));
  const auto passes = static_cast<double>(arguments.number("passes", 1));
  return [numbers, threads, passes](int) {
    const double seconds = read_seconds(*numbers, threads);
    const double bytes = static_cast<double>(numbers->size()) * sizeof(double);
    return Outcome{seconds * passes, {}, {{"gigabytes_per_second", bytes / seconds * 1e-9}}};
  };
}

Contestant make_multiply_add(const Arguments& arguments) {
  const int threads = static_cast<int>(arguments.number("threads"));
  const double operations = std::stod(arguments.text("operations"));
  return [threads, operations](int) {
    constexpr std::size_t turns = 4'000'000;
    std::vector<double> done(static_cast<std::size_t>(threads) * 16);
    std::vector<double> numbers(done.size());
    std::iota(numbers.begin(), numbers.end(), 1.0);
    const Clock::time_point start = Clock::now();
    on_threads(threads, [&](int t) {
      const std::size_t place = static_cast<std::size_t>(t) * 16;  // a cache line of its own
      done[place] = HWY_DYNAMIC_DISPATCH(multiply_add)(turns, &numbers[place]);
    });
    double total = 0;
    for (const double per_turn : done) total += per_turn * turns;
    const double per_second = total / since(start);
    return Outcome{operations / per_second, {}, {{"gigaflops", per_second * 1e-9}}};
  };
}

Contestant make_dsyrk(const Arguments& arguments) {
  const std::int64_t records = arguments.number("records");
  const std::int64_t columns = arguments.number("columns");
  const int threads = static_cast<int>(arguments.number("threads"));
  auto blas = std::make_shared<ThreadedBlas>(arguments.text("openblas"), threads);
  auto numbers = std::make_shared<Numbers>(static_cast<std::size_t>(records * columns));
  auto out = std::make_shared<std::vector<double>>(static_cast<std::size_t>(columns * columns));
  const auto timed = [=](bool by_column) {
    const Clock::time_point start = Clock::now();
    blas->dsyrk(by_column, records, columns, numbers->data(), out->data());
    return since(start);
  };
  // Both layouts are tried, and the better one competes.
  timed(true);
  const bool by_column = timed(true) < std::min(timed(false), timed(false));
  const bool with_read = arguments.number("read", 0) != 0;
  return [=](int) {
    const double dsyrk = timed(by_column);
    const double read = with_read ? read_seconds(*numbers, threads) : 0;
    const double operations = static_cast<double>(records * columns * (columns + 1));
    return Outcome{dsyrk + read,
                   {},
                   {{"dsyrk_s", dsyrk},
                    {"by_column", by_column ? 1 : 0},
                    {"gigaflops", operations / dsyrk * 1e-9}}};
  };
}

}  // namespace starfold::bench
#endif
