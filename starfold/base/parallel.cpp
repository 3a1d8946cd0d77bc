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

namespace starfold {
namespace {

// One call of in_parallel.
struct Job {
  std::size_t tasks = 0;
  const std::function<void(std::size_t)>* work = nullptr;
  std::atomic<std::size_t> next = 0;
  std::size_t wanted = 0;   // helpers that may still join
  std::size_t helping = 0;  // helpers at work
  std::exception_ptr failure;

  // Takes tasks until there are none left; what a task throws is returned.
  std::exception_ptr run() {
    try {
      for (std::size_t task = next++; task < tasks; task = next++) (*work)(task);
    } catch (...) {
      next = tasks;  // the others stop as well
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
    std::exception_ptr failure = job.run();
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
          return waiting->wanted > 0 && waiting->next < waiting->tasks;
        });
        if (open != jobs_.end()) job = *open;
        return closing_ || job != nullptr;
      });
      if (closing_) return;
      --job->wanted;
      ++job->helping;
      lock.unlock();
      const std::exception_ptr failure = job->run();
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
  Job job;
  job.tasks = tasks;
  job.work = &work;
  job.wanted = useful - 1;
  pool().run(job);
}

std::size_t hardware_threads() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace starfold
