// The order of work inside a block program, and where its scratch columns lie.
#include <algorithm>
#include <utility>

#include "starfold/runtime/steps/compiler.h"

namespace starfold::engine {
namespace {

// The columns that a step reads or writes for one cell, or for all of them.
template <typename Visit>
void for_each_read(const Step& step, std::size_t cell, const Visit& visit) {
  for (const Operand& arg : step.args) {
    if (!by_cell(step)) {
      for (const Column& column : arg.columns) visit(column);
    } else if (arg.federated()) {
      visit(arg.columns[cell]);
    }
  }
}

template <typename Visit>
void for_each_write(const Step& step, std::size_t cell, const Visit& visit) {
  if (!by_cell(step)) {
    for (const Column& column : step.out) visit(column);
    for (const Column& column : step.work) visit(column);
  } else if (!step.out.empty()) {
    visit(step.out[cell / step.terms]);
  }
}

// Whether the result of a cell may take the place of an operand that nobody reads again.
bool in_place(const Step& step) {
  return step.code == Code::unary || step.code == Code::binary || step.code == Code::ternary;
}

// Visits what happens in a block one by one: (step, cell) in the order in which it is run.
template <typename Visit>
void for_each_action(const BlockProgram& program, const Visit& visit) {
  for (const Group& group : program.groups) {
    const Step& front = program.steps[group.first];
    const std::size_t cells = by_cell(front) ? front.cells() : 1;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      for (std::size_t s = group.first; s < group.last; ++s) visit(program.steps[s], cell);
    }
  }
}

// One more than the largest number of a scratch column.
std::size_t scratch_columns(const std::vector<Step>& steps) {
  std::size_t count = 0;
  const auto note = [&](const Columns& columns) {
    for (const Column& column : columns) {
      if (column.source == scratch) count = std::max(count, std::size_t{column.index} + 1);
    }
  };
  for (const Step& step : steps) {
    for (const Operand& arg : step.args) note(arg.columns);
    note(step.out);
    note(step.work);
  }
  return count;
}

// What is known about a scratch column while places are given out.
struct Life {
  std::size_t last = 0;  // the last action that touches it
  bool placed = false;
  Column place;
};

}  // namespace

std::vector<Group> group_steps(const std::vector<Step>& steps) {
  std::vector<Group> groups;
  // For scratch columns: the group that writes it, and the last cell that does.
  std::vector<std::pair<std::size_t, std::size_t>> written(scratch_columns(steps));
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    bool joins = !groups.empty() && by_cell(step) && by_cell(steps[groups.back().first]) &&
                 step.cells() == steps[groups.back().first].cells();
    // Every operand must be there when its cell's turn comes.
    for (std::size_t cell = 0; joins && cell < step.cells(); ++cell) {
      for_each_read(step, cell, [&](const Column& column) {
        if (column.source != scratch) return;
        const auto& [group, last] = written[column.index];
        joins = joins && (group != groups.size() || last <= cell);
      });
    }
    if (joins) {
      groups.back().last = s + 1;
    } else {
      groups.push_back({s, s + 1});
    }
    for (std::size_t cell = 0; by_cell(step) && cell < step.cells(); ++cell) {
      for_each_write(step, cell, [&](const Column& column) {
        written[column.index] = {groups.size(), cell};
      });
    }
  }
  return groups;
}

void place_columns(BlockProgram& program, const std::vector<Column>& pinned) {
  std::vector<Life> lives(scratch_columns(program.steps));
  std::size_t action = 0;
  for_each_action(program, [&](const Step& step, std::size_t cell) {
    const auto touch = [&](const Column& column) {
      if (column.source == scratch) lives[column.index].last = action;
    };
    for_each_read(step, cell, touch);
    for_each_write(step, cell, touch);
    ++action;
  });
  for (std::size_t i = 0; i < pinned.size(); ++i) {
    lives[pinned[i].index].placed = true;
    lives[pinned[i].index].place = {kept, static_cast<std::uint32_t>(i)};
  }

  std::vector<std::uint32_t> free;
  action = 0;
  for_each_action(program, [&](const Step& step, std::size_t cell) {
    const auto release = [&](const Column& column) {
      if (column.source != scratch) return;
      Life& life = lives[column.index];
      if (life.last == action && life.place.source == scratch && life.placed) {
        free.push_back(life.place.index);
        life.last = ~std::size_t{0};  // only once
      }
    };
    if (in_place(step)) for_each_read(step, cell, release);
    for_each_write(step, cell, [&](const Column& column) {
      Life& life = lives[column.index];
      if (life.placed) return;
      if (free.empty()) free.push_back(static_cast<std::uint32_t>(program.scratch_columns++));
      life.place = {scratch, free.back()};
      life.placed = true;
      free.pop_back();
    });
    if (!in_place(step)) for_each_read(step, cell, release);
    for_each_write(step, cell, release);
    ++action;
  });

  const auto move = [&](Columns& columns) {
    for (Column& column : columns) {
      if (column.source == scratch) column = lives[column.index].place;
    }
  };
  for (Step& step : program.steps) {
    for (Operand& arg : step.args) move(arg.columns);
    move(step.out);
    move(step.work);
  }
}

}  // namespace starfold::engine
