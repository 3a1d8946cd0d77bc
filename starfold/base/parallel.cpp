#include "starfold/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "starfold/base/schedule.h"

namespace starfold {
namespace {

// Tasks in a row, which one thread takes one after the other: what they read mostly lies in a row as well.
struct alignas(64) Share {
  std::atomic<std::size_t> next = 0;
  std::size_t end = 0;
};

// One call of in_parallel.
struct Job {
  Job(std::size_t tasks, std::size_t threads, const std::function<void(std::size_t)>& each)
      : work(each), shares(threads), wanted(threads - 1) {
    for (std::size_t i = 0; i < threads; ++i) {
      shares[i].next = i * tasks / threads;
      shares[i].end = (i + 1) * tasks / threads;
    }
  }

  const std::function<void(std::size_t)>& work;
  std::vector<Share> shares;
  std::size_t wanted;       // helpers that may still join
  std::size_t helping = 0;  // helpers at work
  std::exception_ptr failure;

  bool open() const {
    return std::any_of(shares.begin(), shares.end(),
                       [](const Share& share) { return share.next < share.end; });
  }

  // Takes the tasks of one share, then what is left of the others; what a task throws is returned.
  std::exception_ptr run(std::size_t own) {
    try {
      for (std::size_t i = 0; i < shares.size(); ++i) {
        Share& share = shares[(own + i) % shares.size()];
        for (std::size_t task = share.next++; task < share.end; task = share.next++) {
          schedule_point();
          work(task);
        }
      }
    } catch (...) {
      for (Share& share : shares) share.next = share.end;  // the others stop as well
      return std::current_exception();
    }
    return nullptr;
  }
};

class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    work_.notify_all();
  }

  void run(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      grow(job.wanted);
      jobs_.push_back(&job);
    }
    work_.notify_all();
    schedule_point();
    std::exception_ptr failure = job.run(0);
    std::unique_lock lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    done_.wait(lock, [&] { return job.helping == 0; });
    if (!failure) failure = job.failure;
    lock.unlock();
    if (failure) std::rethrow_exception(failure);
  }

 private:
  // Starts threads up to this number, or as many as there can be.
  void grow(std::size_t helpers) {
    try {
      while (threads_.size() < helpers) threads_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      return;  // those that are there, and the caller, do the work
    }
  }

  void help() {
    std::unique_lock lock(mutex_);
    while (true) {
      Job* job = nullptr;
      work_.wait(lock, [&] {
        const auto open = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* waiting) {
          return waiting->wanted > 0 && waiting->open();
        });
        if (open != jobs_.end()) job = *open;
        return closing_ || job != nullptr;
      });
      if (closing_) return;
      const std::size_t own = job->wanted--;
      ++job->helping;
      lock.unlock();
      schedule_point();
      const std::exception_ptr failure = job->run(own);
      schedule_point();
      lock.lock();
      if (failure && !job->failure) job->failure = failure;
      --job->helping;
      done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<Job*> jobs_;
  bool closing_ = false;
  std::vector<std::jthread> threads_;  // last: joined before what they use is gone
};

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

void in_parallel(std::size_t tasks, std::size_t threads,
                 const std::function<void(std::size_t task)>& work) {
  const std::size_t useful = std::min(tasks, threads);
  if (useful <= 1) {
    for (std::size_t task = 0; task < tasks; ++task) work(task);
    return;
  }
  Job job(tasks, useful, work);
  pool().run(job);
}

std::size_t hardware_threads() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace starfold
