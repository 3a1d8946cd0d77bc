// The language server on two streams.
#pragma once

namespace starfold::editor {

// Serves one editor until it says goodbye or leaves. The exit code of the process.
int serve(int in, int out);

}  // namespace starfold::editor
