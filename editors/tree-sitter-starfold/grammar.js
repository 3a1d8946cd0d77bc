// The grammar of Starfold for tree-sitter. docs/language.md is the reference; the checker's own parser is the judge.
// A newline ends a statement, except inside ( ) and [ ] and where something more is needed. src/scanner.c keeps count.
"use strict";

// From the loosest operator to the tightest.
const level = { or: 1, and: 2, not: 3, comparison: 4, sum: 5, product: 6, minus: 7, power: 8, postfix: 9 };

const list = (rule) => seq(rule, repeat(seq(",", rule)));

// Statements on lines of their own; the last may be the value of a block.
const lines = ($) => seq(repeat($._newline), optional(seq($._line, repeat(seq(repeat1($._newline), $._line)), repeat($._newline))));

module.exports = grammar({
  name: "starfold",

  externals: ($) => [$._newline, "(", ")", "[", "]", "{", "}"],
  extras: ($) => [/[ \t\r\n]/, $.comment],
  word: ($) => $.identifier,
  conflicts: ($) => [[$._expression, $.call]], // x[1] and sum[1](x) differ behind their brackets

  rules: {
    source_file: ($) => lines($),
    _line: ($) => choice($._statement, alias($._expression, $.result)),
    block: ($) => seq("{", lines($), "}"),

    _statement: ($) =>
      choice($.import, $.size, $.input, $.function, $.let, $.state, $.update, $.repeat, $.trace, $.require, $.expect, $.output, $.keep),

    import: ($) => seq("import", field("module", $.identifier)),
    size: ($) => seq("size", field("name", $.identifier), "=", field("value", $._expression)),
    input: ($) => seq("input", field("name", $.identifier), ":", field("type", $.type), optional(seq("=", field("default", $._expression)))),
    function: ($) =>
      seq("fn", field("name", $.identifier), field("parameters", $.parameters), optional(seq("->", field("result", $.type))),
        choice(seq("=", field("body", $._result)), field("body", $.block))),
    parameters: ($) => seq("(", optional(list($.parameter)), optional(","), ")"),
    parameter: ($) => seq(field("name", $.identifier), ":", field("type", choice($.type, "fn"))), // a function is given by its name
    let: ($) =>
      seq("let",
        choice(seq(field("name", $.identifier), optional(seq(":", field("type", $.type)))),
          seq("(", list(field("name", $.identifier)), optional(","), ")")),
        "=", field("value", $._result)),
    state: ($) => seq(optional("private"), "state", field("name", $.identifier), optional(seq(":", field("type", $.type))), "=", field("value", $._expression)),
    update: ($) => seq(field("name", $.identifier), "<-", field("value", $._expression)),
    repeat: ($) =>
      seq("repeat", field("count", choice($.batches, $._expression)), field("body", $.block),
        optional(seq("until", field("until", $._expression)))),
    batches: ($) => seq("batches", "(", field("size", $._expression), ",", field("seed", $._expression), ")"),
    trace: ($) => seq("trace", field("name", $.identifier), "=", field("value", $._expression)),
    require: ($) => seq("require", field("condition", $._expression), ",", field("sentence", $.string)),
    expect: ($) => seq("expect", field("condition", $._expression), ",", field("sentence", $.string)),
    output: ($) => seq("output", field("name", $.identifier), optional(seq("=", field("value", $._expression)))),
    keep: ($) => seq("keep", field("name", $.identifier), optional(seq("=", field("value", $._expression)))),

    type: ($) => seq("[", optional(list(choice($.star, $._expression))), optional(","), "]"),
    star: ($) => seq("*", optional($.identifier)),

    _result: ($) => $._expression,
    _expression: ($) =>
      choice($.identifier, $.number, $.constant, $.unary, $.binary, $.call, $.index, $.transpose, $.list, $.parenthesized, $.tuple, $.each_client),

    number: () => token(choice(/\d+(\.\d*)?([eE][+-]?\d+)?/, /\.\d+([eE][+-]?\d+)?/)),
    constant: () => choice("inf", "nan", "pi"),
    unary: ($) => choice(prec(level.minus, seq("-", $._expression)), prec(level.not, seq("not", $._expression))),
    binary: ($) =>
      choice(
        ...[["or", level.or], ["and", level.and]].map(([sign, at]) => prec.left(at, seq($._expression, sign, $._expression))),
        ...["==", "!=", "<", "<=", ">", ">="].map((sign) => prec.left(level.comparison, seq($._expression, sign, $._expression))),
        ...["+", "-"].map((sign) => prec.left(level.sum, seq($._expression, sign, $._expression))),
        ...["*", "/", "@"].map((sign) => prec.left(level.product, seq($._expression, sign, $._expression))),
        prec.right(level.power, seq($._expression, "^", $._expression))),
    call: ($) =>
      seq(optional(seq(field("module", $.identifier), ".")), field("function", $.identifier), optional(field("axes", $.subscripts)), field("arguments", $.arguments)),
    arguments: ($) => seq("(", optional(list($._expression)), optional(","), ")"),
    index: ($) => prec(level.postfix, seq(field("value", $._expression), field("subscripts", $.subscripts))),
    subscripts: ($) => seq("[", optional(list(choice($.star, ":", $.range, "new", $._expression))), optional(","), "]"),
    range: ($) => choice(seq($._expression, ":", optional($._expression)), seq(":", $._expression)),
    transpose: ($) => prec(level.postfix, seq($._expression, "'")),
    list: ($) => seq("[", optional(list($._expression)), optional(","), "]"),
    parenthesized: ($) => seq("(", $._expression, ")"),
    tuple: ($) => seq("(", $._expression, repeat1(seq(",", $._expression)), optional(","), ")"),
    each_client: ($) => seq("each", "client", field("body", $.block)),

    string: () => /"[^"\n]*"/,
    identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
    comment: () => /#[^\n]*/,
  },
});
