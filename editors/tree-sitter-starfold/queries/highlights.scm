(comment) @comment
(string) @string
(number) @number
(constant) @constant.builtin
(star) @type.qualifier

["import" "size" "input" "fn" "let" "state" "private" "trace" "require" "expect" "output" "keep"] @keyword
["repeat" "until" "batches" "each" "client"] @keyword.control
["and" "or" "not" "new"] @keyword.operator
["+" "-" "*" "/" "@" "^" "'" "==" "!=" "<" "<=" ">" ">=" "<-" "->" "="] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" "."] @punctuation.delimiter

(import module: (identifier) @module)
(call module: (identifier) @module)
(call function: (identifier) @function.call)
(function name: (identifier) @function)
(parameter name: (identifier) @variable.parameter)
(identifier) @variable
