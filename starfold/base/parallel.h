// Work on several threads. There is one pool for the whole process; its threads are started when they are first
// needed and kept, since starting one takes longer than many rounds do altogether.
#pragma once

#include <cstddef>
#include <functional>

namespace starfold {

// Calls work(0), ..., work(tasks - 1), each once, on up to `threads` threads with the calling one among them, and
// returns when all have returned. The first exception is carried to the caller, and no further task is begun
// after it. Calls may nest. Where the system gives no threads, the calling one does all the work.
void in_parallel(std::size_t tasks, std::size_t threads,
                 const std::function<void(std::size_t task)>& work);

// As many threads as the machine runs at once.
std::size_t hardware_threads();

}  // namespace starfold
