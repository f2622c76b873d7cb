/* The grammar of the kernel language: tokens in, syntax tree out (ast.h).
 *
 * LALR(1) without conflicts; precedence is declared for operators only. Several errors are
 * reported per run: a bad statement is skipped up to its `;`, its `}` or the end of the braces it
 * opened, a bad item up to the next word that begins one. Messages are made by syntax_error. */
%code requires {
#include "frontend/dsl/parser.h"
}
%define api.pure full
%define api.prefix {cps_dsl_yy}
%define api.location.type {cps_span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {cps_dsl_parser *p}

%code {
#include <stdio.h>

#define YYMAXDEPTH 4000
#define YYLLOC_DEFAULT(cur, rhs, n)                                                              \
    do {                                                                                         \
        if (n) {                                                                                 \
            (cur) = YYRHSLOC(rhs, 1);                                                            \
            (cur).end = YYRHSLOC(rhs, n).end;                                                    \
        } else {                                                                                 \
            (cur).file = YYRHSLOC(rhs, 0).file;                                                  \
            (cur).begin = (cur).end = YYRHSLOC(rhs, 0).end;                                      \
        }                                                                                        \
    } while (0)

static int cps_dsl_yylex(CPS_DSL_YYSTYPE *v, CPS_DSL_YYLTYPE *at, cps_dsl_parser *p);
static void cps_dsl_yyerror(const CPS_DSL_YYLTYPE *at, cps_dsl_parser *p, const char *why);
int cps_dsl_lex_raw(CPS_DSL_YYSTYPE *v, CPS_DSL_YYLTYPE *at, void *scanner);

#define NODE(cls, kind_)                                                                         \
    cps_ast_##cls *n = cps_new(p->arena, cps_ast_##cls);                                         \
    n->head.kind = (kind_);                                                                      \
    n->head.span = yyloc
/* Values that are larger than a name stand as pointers on the parser's stack, which is copied with every reduction. */
#define BOX(cls, ...) boxed(p->arena, &(cps_ast_##cls){__VA_ARGS__}, sizeof(cps_ast_##cls))
/* Most lists have one or two members: room for two at first, where a vector takes eight. */
#define PUSH(list, x)                                                                            \
    ((list).n ? (void)0 : cps_vec_reserve(p->arena, &(list), 2), cps_vec_push(p->arena, &(list), (x)))
#define MARKS(v) ((cps_ast_marks){(v).n, (v).data})
#define NONAME ((cps_ast_name){0, NULL, CPS_NOSPAN})

static void *
boxed(cps_arena *a, const void *value, size_t n)
{
    return memcpy(cps_arena_raw(a, n), value, n);
}
}

%union {
    cps_ast_name name;
    cps_lit lit;
    double real;
    const char *text;
    cps_expr_p expr;
    cps_vexpr exprs;
    const cps_ast_stmt *stmt;
    cps_vstmt stmts;
    cps_ast_body *body;
    cps_vname names;
    cps_ast_dim dim;
    cps_vdim dims;
    cps_ast_mark *mark;
    cps_vmark marks;
    cps_ast_sub *sub;
    cps_vsub subs;
    cps_ast_arg *arg;
    cps_varg args;
    cps_ast_bind *bind;
    cps_vbind binds;
    cps_ast_pair *pair;
    cps_vpair pairs;
    cps_ast_case case_;
    cps_vcase cases;
    cps_ast_order order;
    cps_vorder orders;
    cps_ast_operand *operand;
    cps_voperand operands;
    cps_ast_attr *attr;
    cps_vattr attrs;
    cps_ast_dimdef *dimdef;
    cps_vdimdef dimdefs;
    cps_ast_fnparam *fnparam;
    cps_vfnparam fnparams;
    cps_ast_enumerator *enumerator;
    cps_venumerator enumerators;
    cps_ast_clause *clause;
    const cps_ast_item *item;
    cps_word word;
    bool flag;
}

%token END 0 "the end of the file"
%token <name> T_NAME "a name"
%token <lit> T_INT "an integer"
%token <real> T_FLOAT "a number"
%token <text> T_STRING "a string"
%token T_USE "use" T_CONST "const" T_ENUM "enum" T_OP "op" T_BLOCK "block" T_LEAF "leaf" T_FN "fn"
%token T_FOR "for" T_ON "on" T_LET "let" T_VAR "var" T_HBM "hbm" T_SBUF "sbuf" T_PSUM "psum"
%token T_REG "reg" T_RAM "ram" T_VREG "vreg" T_IF "if" T_ELSE "else" T_IN "in" T_LOOP "loop"
%token T_WHILE "while" T_WHEN "when" T_STAGE "stage" T_BREAK "break" T_CONTINUE "continue"
%token T_RETURN "return" T_ASSERT "assert" T_WHERE "where" T_PARAM "param" T_COST "cost"
%token T_RESOURCES "resources" T_TOLERANCE "tolerance" T_CASES "cases" T_LAYOUT "layout"
%token T_PRIORITY "priority" T_BY "by" T_REDUCE "reduce" T_INTO "into" T_ONTO "onto"
%token T_ACROSS "across" T_PIPELINED "pipelined" T_ROLLED "rolled" T_UNROLLED "unrolled"
%token T_INOUT "inout" T_OR "or"
%token T_GIVES "->" T_ARROW "<-" T_ARROW_ADD "<+" T_ADD_SET "+=" T_SUB_SET "-=" T_MUL_SET "*="
%token T_RANGE ".." T_OROR "||" T_ANDAND "&&" T_LE "<=" T_GE ">=" T_EQ "==" T_NE "!="
%token T_SHL "<<" T_SHR ">>"
%token T_REST "the rest of a body" T_PART "a part of a body" /* no words: made by yylex */

/* Messages name what is expected in the order of first sight. */
%token '<' '>' '|' '&' '+' '-' '*' '/' '%' '@' ';' '=' '{' '}' ',' '(' ')' '[' ']'

%nonassoc ".."
%right '?'
%left "||"
%left "&&"
%nonassoc '<' '>' "<=" ">=" "==" "!=" "in"
%left '|'
%left '&'
%left "<<" ">>"
%left '+' '-'
%left '*' '/' '%' '@'
%precedence SIGN

%type <item> item op leaf fn enum
%type <enumerator> enumerator
%type <enumerators> enumerators
%type <flag> opkind optinout optq
%type <operand> operand result
%type <operands> operands results
%type <attr> attr
%type <attrs> optattrs attrs
%type <dimdef> dimdef
%type <dimdefs> optdims dimdefs
%type <fnparam> fparam
%type <fnparams> optparams params
%type <names> names
%type <body> body whole
%type <stmts> stmts
%type <stmt> stmt ifstmt
%type <word> assign space
%type <dims> optshape dims
%type <dim> dim
%type <marks> marks
%type <mark> mark
%type <binds> binds
%type <bind> bind hows
%type <clause> clause
%type <pair> pair
%type <pairs> pairs
%type <case_> case
%type <cases> cases
%type <order> layout
%type <orders> layouts
%type <exprs> exprs
%type <expr> expr postfix opttype optexpr
%type <sub> sub
%type <subs> subs
%type <arg> arg
%type <args> args arglist

%%

file:
    %empty
  | file item {
        if ($item) {
            uint32_t cap = p->out->n; /* doubled when full: capacity is the next power of two */
            if ((cap & (cap - 1)) == 0) {
                const cps_ast_item **more =
                    cps_new_array(p->arena, const cps_ast_item *, cap ? 2 * cap : 1);
                if (cap)
                    memcpy(more, p->out->item, cap * sizeof *more);
                p->out->item = more;
            }
            p->out->item[p->out->n++] = $item;
        }
    }
  | file error
  ;

item:
    "use" T_STRING[path] ';' {
        NODE(use, CPS_IT_USE);
        n->path = $path;
        n->path_span = @path;
        $$ = &n->head;
    }
  | "const" T_NAME '=' expr ';' {
        NODE(const, CPS_IT_CONST);
        n->name = $T_NAME;
        n->value = $expr;
        $$ = &n->head;
    }
  | enum
  | op
  | leaf
  | fn
  | T_PART stmts '}' { cps_make_whole(p, p->part, $stmts); $$ = NULL; }
  | T_PART stmts error '}' { cps_make_whole(p, p->part, $stmts); $$ = NULL; yyerrok; }
  ;

enum:
    "enum" T_NAME '{' enumerators optcomma '}' {
        NODE(enum, CPS_IT_ENUM);
        n->name = $T_NAME;
        n->n = $enumerators.n;
        n->member = $enumerators.data;
        $$ = &n->head;
    }
  ;
enumerators:
    enumerator { $$ = (cps_venumerator){0}; PUSH($$, *$1); }
  | enumerators ',' enumerator { $$ = $1; PUSH($$, *$3); }
  ;
enumerator:
    T_NAME { $$ = BOX(enumerator, $1, NULL); }
  | T_NAME '=' expr { $$ = BOX(enumerator, $1, $3); }
  ;
optcomma: %empty | ',' ;

op:
    opkind T_NAME '(' operands optattrs ')' "->" results optdims whole[body] {
        NODE(op, CPS_IT_OP);
        n->block = $opkind;
        n->name = $T_NAME;
        n->noperand = $operands.n;
        n->operand = $operands.data;
        n->nattr = $optattrs.n;
        n->attr = $optattrs.data;
        n->nresult = $results.n;
        n->result = $results.data;
        n->ndimdef = $optdims.n;
        n->dimdef = $optdims.data;
        n->body = $body;
        n->clauses = cps_make_clauses(p, $body);
        $$ = &n->head;
    }
  ;
opkind: "op" { $$ = false; } | "block" { $$ = true; } ;
operands:
    operand { $$ = (cps_voperand){0}; PUSH($$, *$1); }
  | operands ',' operand { $$ = $1; PUSH($$, *$3); }
  ;
operand:
    optinout T_NAME optq '[' exprs ']' opttype {
        $$ = BOX(operand, $T_NAME, $optinout, $optq, $exprs.n, $exprs.data, $opttype, @$);
    }
  ;
optinout: %empty { $$ = false; } | "inout" { $$ = true; } ;
optq: %empty { $$ = false; } | '?' { $$ = true; } ;
opttype: %empty { $$ = NULL; } | ':' expr { $$ = $2; } ;
optattrs: %empty { $$ = (cps_vattr){0}; } | ';' attrs { $$ = $2; } ;
attrs:
    attr { $$ = (cps_vattr){0}; PUSH($$, *$1); }
  | attrs ',' attr { $$ = $1; PUSH($$, *$3); }
  ;
attr:
    T_NAME ':' expr { $$ = BOX(attr, $1, $3, NULL, @$); }
  | T_NAME ':' expr[type] '=' expr[dflt] { $$ = BOX(attr, $1, $type, $dflt, @$); }
  ;
results:
    result { $$ = (cps_voperand){0}; PUSH($$, *$1); }
  | results ',' result { $$ = $1; PUSH($$, *$3); }
  ;
result:
    T_NAME '[' exprs ']' opttype {
        $$ = BOX(operand, $T_NAME, false, false, $exprs.n, $exprs.data, $opttype, @$);
    }
  ;
optdims: %empty { $$ = (cps_vdimdef){0}; } | "where" dimdefs { $$ = $2; } ;
dimdefs:
    dimdef { $$ = (cps_vdimdef){0}; PUSH($$, *$1); }
  | dimdefs ',' dimdef { $$ = $1; PUSH($$, *$3); }
  ;
dimdef: T_NAME '=' expr { $$ = BOX(dimdef, $1, $3); } ;

leaf:
    "leaf" T_NAME[name] "for" T_NAME[op] "on" names whole[body] {
        NODE(leaf, CPS_IT_LEAF);
        n->name = $name;
        n->op = $op;
        n->ntarget = $names.n;
        n->target = $names.data;
        n->body = $body;
        n->clauses = cps_make_clauses(p, $body);
        $$ = &n->head;
    }
  ;
fn:
    "fn" T_NAME '(' optparams ')' whole[body] {
        NODE(fn, CPS_IT_FN);
        n->name = $T_NAME;
        n->n = $optparams.n;
        n->param = $optparams.data;
        n->body = $body;
        $$ = &n->head;
    }
  ;
optparams: %empty { $$ = (cps_vfnparam){0}; } | params ;
params:
    fparam { $$ = (cps_vfnparam){0}; PUSH($$, *$1); }
  | params ',' fparam { $$ = $1; PUSH($$, *$3); }
  ;
fparam:
    T_NAME { $$ = BOX(fnparam, $1, NULL); }
  | T_NAME '=' expr { $$ = BOX(fnparam, $1, $3); }
  ;
names:
    T_NAME { $$ = (cps_vname){0}; PUSH($$, $1); }
  | names ',' T_NAME { $$ = $1; PUSH($$, $3); }
  ;

whole:
    body
  | '{' stmts T_REST '}' { $$ = cps_make_part(p, @$, $stmts, @T_REST); }
  ;
body:
    '{' stmts '}' { $$ = cps_make_body(p, @$, $stmts); }
  | '{' stmts error '}' { $$ = cps_make_body(p, @$, $stmts); yyerrok; }
  ;
stmts:
    %empty { $$ = (cps_vstmt){0}; }
  | stmts stmt { $$ = $1; if ($2) PUSH($$, $2); }
  ;
stmt:
    "let" T_NAME '=' expr ';' {
        cps_vname v = {0};
        PUSH(v, $T_NAME);
        $$ = cps_make_let(p, @$, CPS_ST_LET, v, false, $expr);
    }
  | "let" '(' names ')' '=' expr ';' {
        $$ = cps_make_let(p, @$, CPS_ST_LET, $names, true, $expr);
    }
  | "var" T_NAME '=' expr ';' {
        cps_vname v = {0};
        PUSH(v, $T_NAME);
        $$ = cps_make_let(p, @$, CPS_ST_VAR, v, false, $expr);
    }
  | space T_NAME optshape opttype marks ';' {
        NODE(store, CPS_ST_STORE);
        n->space = $space.id;
        n->name = $T_NAME;
        n->shaped = $optshape.n > 0;
        n->ndim = $optshape.n;
        n->dim = $optshape.data;
        n->dtype = $opttype;
        n->decl = MARKS($marks);
        $$ = &n->head;
    }
  | space T_NAME optshape opttype marks[decl] '=' expr marks[after] ';' {
        NODE(store, CPS_ST_STORE);
        n->space = $space.id;
        n->name = $T_NAME;
        n->shaped = $optshape.n > 0;
        n->ndim = $optshape.n;
        n->dim = $optshape.data;
        n->dtype = $opttype;
        n->decl = MARKS($decl);
        n->init = true;
        n->set = CPS_SET_SET;
        n->value = $expr;
        n->marks = MARKS($after);
        $$ = &n->head;
    }
  | space T_NAME optshape opttype marks[decl] "<-" expr marks[after] ';' {
        NODE(store, CPS_ST_STORE);
        n->space = $space.id;
        n->name = $T_NAME;
        n->shaped = $optshape.n > 0;
        n->ndim = $optshape.n;
        n->dim = $optshape.data;
        n->dtype = $opttype;
        n->decl = MARKS($decl);
        n->init = true;
        n->set = CPS_SET_ARROW;
        n->value = $expr;
        n->marks = MARKS($after);
        $$ = &n->head;
    }
  | postfix assign expr marks ';' {
        $$ = cps_make_assign(p, @$, $postfix, $assign.id, $assign.span, $expr, $marks);
    }
  | postfix marks ';' { $$ = cps_make_callst(p, @$, $postfix, $marks); }
  | T_NAME ':' stmt[inner] {
        NODE(label, CPS_ST_LABEL);
        n->name = $T_NAME;
        n->stmt = $inner;
        $$ = $inner ? &n->head : NULL;
    }
  | ifstmt
  | "for" binds body {
        NODE(for, CPS_ST_FOR);
        n->n = $binds.n;
        n->bind = $binds.data;
        n->body = $body;
        $$ = &n->head;
    }
  | "loop" T_NAME "in" expr body {
        NODE(loop, CPS_ST_LOOP);
        n->name = $T_NAME;
        n->range = $expr;
        n->body = $body;
        $$ = &n->head;
    }
  | "while" '(' expr ')' body {
        NODE(while, CPS_ST_WHILE);
        n->cond = $expr;
        n->body = $body;
        $$ = &n->head;
    }
  | "when" '(' expr ')' body { $$ = cps_make_if(p, @$, CPS_ST_WHEN, $expr, $body, NULL, false); }
  | "when" '(' expr ')' body[yes] "else" body[no] {
        $$ = cps_make_if(p, @$, CPS_ST_WHEN, $expr, $yes, $no, false);
    }
  | "stage" T_NAME body {
        NODE(stage, CPS_ST_STAGE);
        n->name = $T_NAME;
        n->body = $body;
        $$ = &n->head;
    }
  | "break" ';' { $$ = cps_make_jump(p, @$, CPS_ST_BREAK, NULL); }
  | "continue" ';' { $$ = cps_make_jump(p, @$, CPS_ST_CONTINUE, NULL); }
  | "return" ';' { $$ = cps_make_jump(p, @$, CPS_ST_RETURN, NULL); }
  | "return" expr ';' { $$ = cps_make_jump(p, @$, CPS_ST_RETURN, $expr); }
  | "assert" expr ':' T_STRING ';' {
        NODE(assert, CPS_ST_ASSERT);
        n->cond = $expr;
        n->why = $T_STRING;
        $$ = &n->head;
    }
  | clause { $$ = &$1->head; }
  | error ';' { $$ = NULL; yyerrok; }
  ;
ifstmt:
    "if" '(' expr ')' body { $$ = cps_make_if(p, @$, CPS_ST_IF, $expr, $body, NULL, false); }
  | "if" '(' expr ')' body[yes] "else" body[no] {
        $$ = cps_make_if(p, @$, CPS_ST_IF, $expr, $yes, $no, false);
    }
  | "if" '(' expr ')' body[yes] "else" ifstmt[more] {
        cps_vstmt v = {0};
        PUSH(v, $more);
        $$ = cps_make_if(p, @$, CPS_ST_IF, $expr, $yes, cps_make_body(p, @more, v), true);
    }
  ;
assign:
    '=' { $$ = (cps_word){CPS_SET_SET, @1}; }
  | "+=" { $$ = (cps_word){CPS_SET_ADD, @1}; }
  | "-=" { $$ = (cps_word){CPS_SET_SUB, @1}; }
  | "*=" { $$ = (cps_word){CPS_SET_MUL, @1}; }
  | "<-" { $$ = (cps_word){CPS_SET_ARROW, @1}; }
  | "<+" { $$ = (cps_word){CPS_SET_ARROW_ADD, @1}; }
  ;
space:
    "hbm" { $$ = (cps_word){CPS_SPACE_HBM, @1}; }
  | "sbuf" { $$ = (cps_word){CPS_SPACE_SBUF, @1}; }
  | "psum" { $$ = (cps_word){CPS_SPACE_PSUM, @1}; }
  | "reg" { $$ = (cps_word){CPS_SPACE_REG, @1}; }
  | "ram" { $$ = (cps_word){CPS_SPACE_RAM, @1}; }
  | "vreg" { $$ = (cps_word){CPS_SPACE_VREG, @1}; }
  ;
optshape: %empty { $$ = (cps_vdim){0}; } | '[' dims ']' { $$ = $2; } ;
dims:
    dim { $$ = (cps_vdim){0}; PUSH($$, $1); }
  | dims ',' dim { $$ = $1; PUSH($$, $3); }
  ;
dim:
    expr { $$ = (cps_ast_dim){$1, NULL, @$}; }
  | expr "by" expr { $$ = (cps_ast_dim){$1, $3, @$}; }
  ;
marks:
    %empty { $$ = (cps_vmark){0}; }
  | marks mark { $$ = $1; PUSH($$, *$2); }
  ;
mark:
    T_NAME { cps_check_mark(p, $T_NAME); } expr {
        p->unknown_mark = false;
        $$ = BOX(mark, CPS_MARK_WORD, $T_NAME, $expr, @$);
    }
  | "priority" expr {
        cps_sym sym = cps_sym_intern(p->syms, "priority");
        cps_ast_name name = {sym, cps_sym_name(p->syms, sym), @1};
        $$ = BOX(mark, CPS_MARK_WORD, name, $expr, @$);
    }
  | "on" T_NAME { $$ = BOX(mark, CPS_MARK_ON, $T_NAME, NULL, @$); }
  | "reduce" T_NAME "into" postfix { $$ = BOX(mark, CPS_MARK_INTO, $2, $4, @$); }
  | "reduce" T_NAME "onto" postfix { $$ = BOX(mark, CPS_MARK_ONTO, $2, $4, @$); }
  ;
binds:
    bind { $$ = (cps_vbind){0}; PUSH($$, *$1); }
  | binds ',' bind { $$ = $1; PUSH($$, *$3); }
  ;
bind:
    T_NAME "in" expr hows {
        $$ = $hows;
        $$->name = $T_NAME;
        $$->range = $expr;
        $$->span = @$;
    }
  ;
hows:
    %empty { $$ = BOX(bind, 0); }
  | hows "across" T_NAME { $$ = $1; $$->across = $3; }
  | hows "pipelined" { $$ = $1; $$->pipelined = true; }
  | hows "rolled" { $$ = $1; $$->rolled = true; }
  | hows "unrolled" { $$ = $1; $$->unrolled = true; }
  ;
clause:
    "where" expr ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_WHERE);
        $$->a = $expr;
    }
  | "where" expr ':' T_STRING ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_WHERE);
        $$->a = $expr;
        $$->why = $T_STRING;
    }
  | "param" T_NAME "in" expr[set] '=' expr[dflt] ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_PARAM);
        $$->name = $T_NAME;
        $$->a = $set;
        $$->b = $dflt;
    }
  | "cost" pairs ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_COST);
        $$->n = $pairs.n;
        $$->pair = $pairs.data;
    }
  | "resources" pairs ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_RESOURCES);
        $$->n = $pairs.n;
        $$->pair = $pairs.data;
    }
  | "tolerance" expr[rtol] ',' expr[atol] ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_TOLERANCE);
        $$->a = $rtol;
        $$->b = $atol;
    }
  | "cases" cases ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_CASES);
        $$->n = $cases.n;
        $$->cases = $cases.data;
    }
  | "priority" expr ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_PRIORITY);
        $$->a = $expr;
    }
  | "layout" T_NAME ':' layouts ';' {
        $$ = cps_make_clause(p, @$, CPS_CL_LAYOUT);
        $$->name = $T_NAME;
        $$->n = $layouts.n;
        $$->order = $layouts.data;
    }
  ;
pairs:
    pair { $$ = (cps_vpair){0}; PUSH($$, *$1); }
  | pairs ',' pair { $$ = $1; PUSH($$, *$3); }
  ;
pair:
    T_NAME ':' expr { $$ = BOX(pair, $1, $3, @$); }
  | space ':' expr {
        const char *text = cps_ast_space_text[$space.id];
        cps_sym sym = cps_sym_intern(p->syms, text);
        $$ = BOX(pair, {sym, text, $space.span}, $expr, @$);
    }
  ;
cases:
    case { $$ = (cps_vcase){0}; PUSH($$, $1); }
  | cases ',' case { $$ = $1; PUSH($$, $3); }
  ;
case: '(' pairs ')' { $$ = (cps_ast_case){$pairs.n, $pairs.data, @$}; } ;
layouts:
    layout { $$ = (cps_vorder){0}; PUSH($$, $1); }
  | layouts "or" layout { $$ = $1; PUSH($$, $3); }
  ;
layout:
    '[' dims ']' { $$ = (cps_ast_order){CPS_SPACE_NONE, $dims.n, $dims.data, @$}; }
  | space '[' dims ']' { $$ = (cps_ast_order){$space.id, $dims.n, $dims.data, @$}; }
  ;

exprs:
    expr { $$ = (cps_vexpr){0}; PUSH($$, $1); }
  | exprs ',' expr { $$ = $1; PUSH($$, $3); }
  ;
expr:
    postfix
  | '-' expr[a] %prec SIGN { $$ = cps_make_unary(p, @$, CPS_UN_NEG, $a); }
  | '!' expr[a] %prec SIGN { $$ = cps_make_unary(p, @$, CPS_UN_NOT, $a); }
  | expr "||" expr { $$ = cps_make_binary(p, @$, CPS_BIN_OR, @2, $1, $3); }
  | expr "&&" expr { $$ = cps_make_binary(p, @$, CPS_BIN_AND, @2, $1, $3); }
  | expr '<' expr { $$ = cps_make_binary(p, @$, CPS_BIN_LT, @2, $1, $3); }
  | expr '>' expr { $$ = cps_make_binary(p, @$, CPS_BIN_GT, @2, $1, $3); }
  | expr "<=" expr { $$ = cps_make_binary(p, @$, CPS_BIN_LE, @2, $1, $3); }
  | expr ">=" expr { $$ = cps_make_binary(p, @$, CPS_BIN_GE, @2, $1, $3); }
  | expr "==" expr { $$ = cps_make_binary(p, @$, CPS_BIN_EQ, @2, $1, $3); }
  | expr "!=" expr { $$ = cps_make_binary(p, @$, CPS_BIN_NE, @2, $1, $3); }
  | expr "in" expr { $$ = cps_make_binary(p, @$, CPS_BIN_IN, @2, $1, $3); }
  | expr '|' expr { $$ = cps_make_binary(p, @$, CPS_BIN_BOR, @2, $1, $3); }
  | expr '&' expr { $$ = cps_make_binary(p, @$, CPS_BIN_BAND, @2, $1, $3); }
  | expr "<<" expr { $$ = cps_make_binary(p, @$, CPS_BIN_SHL, @2, $1, $3); }
  | expr ">>" expr { $$ = cps_make_binary(p, @$, CPS_BIN_SHR, @2, $1, $3); }
  | expr '+' expr { $$ = cps_make_binary(p, @$, CPS_BIN_ADD, @2, $1, $3); }
  | expr '-' expr { $$ = cps_make_binary(p, @$, CPS_BIN_SUB, @2, $1, $3); }
  | expr '*' expr { $$ = cps_make_binary(p, @$, CPS_BIN_MUL, @2, $1, $3); }
  | expr '/' expr { $$ = cps_make_binary(p, @$, CPS_BIN_DIV, @2, $1, $3); }
  | expr '%' expr { $$ = cps_make_binary(p, @$, CPS_BIN_MOD, @2, $1, $3); }
  | expr '@' expr { $$ = cps_make_binary(p, @$, CPS_BIN_MATMUL, @2, $1, $3); }
  | expr '?' expr ':' expr %prec '?' { $$ = cps_make_cond(p, @$, $1, $3, $5); }
  | expr ".." expr { $$ = cps_make_binary(p, @$, CPS_BIN_RANGE, @2, $1, $3); }
  ;
postfix:
    postfix[a] '[' subs ']' { $$ = cps_make_index(p, @$, $a, $subs); }
  | postfix[a] '(' args ')' { $$ = cps_make_call(p, @$, $a, $args); }
  | postfix[a] '.' T_NAME { $$ = cps_make_member(p, @$, $a, $T_NAME); }
  | postfix[a] '\'' { $$ = cps_make_transpose(p, @$, $a); }
  | T_NAME { $$ = cps_make_ref(p, @$, $1); }
  | space '.' T_NAME { $$ = cps_make_spaceref(p, @$, $space.id, $T_NAME); }
  | T_INT { $$ = cps_make_int(p, @$, $1); }
  | T_FLOAT { $$ = cps_make_float(p, @$, $1); }
  | T_STRING { $$ = cps_make_str(p, @$, $1); }
  | '(' expr ')' { $$ = $2; }
  | '(' expr ',' exprs ')' {
        cps_vexpr v = {0};
        PUSH(v, $expr);
        for (uint32_t i = 0; i < $exprs.n; i++)
            PUSH(v, $exprs.data[i]);
        $$ = cps_make_seq(p, @$, CPS_EX_TUPLE, v);
    }
  | '[' exprs ']' { $$ = cps_make_seq(p, @$, CPS_EX_LIST, $exprs); }
  | '[' expr[value] "for" T_NAME "in" expr[range] ']' {
        $$ = cps_make_each(p, @$, $value, $T_NAME, $range);
    }
  | '{' exprs '}' { $$ = cps_make_seq(p, @$, CPS_EX_SET, $exprs); }
  ;
subs:
    sub { $$ = (cps_vsub){0}; PUSH($$, *$1); }
  | subs ',' sub { $$ = $1; PUSH($$, *$3); }
  ;
sub:
    expr { $$ = BOX(sub, @$, false, $1, NULL, NULL); }
  | optexpr[lo] ':' optexpr[hi] { $$ = BOX(sub, @$, true, $lo, $hi, NULL); }
  | optexpr[lo] ':' optexpr[hi] ':' expr[step] { $$ = BOX(sub, @$, true, $lo, $hi, $step); }
  ;
optexpr: %empty { $$ = NULL; } | expr ;
args: %empty { $$ = (cps_varg){0}; } | arglist ;
arglist:
    arg { $$ = (cps_varg){0}; PUSH($$, *$1); }
  | arglist ',' arg { $$ = $1; PUSH($$, *$3); }
  ;
arg:
    expr { $$ = BOX(arg, NONAME, $1, @$); }
  | T_NAME ':' expr { $$ = BOX(arg, $1, $3, @$); }
  | "op"[word] ':' expr { // an operand of some intrinsics has the name of the reserved word
        cps_sym sym = cps_sym_intern(p->syms, "op");
        $$ = BOX(arg, {sym, "op", @word}, $expr, @$);
    }
  ;

%%

/* ---- tokens ---- */

// After a syntax error the parser throws tokens away up to `;` or `}`. A `{` on the way belongs to
// what is thrown away: it goes with all it encloses, and stands as the `;` the parser waits for.
static int
skip_braces(CPS_DSL_YYSTYPE *v, CPS_DSL_YYLTYPE *at, cps_dsl_parser *p)
{
    for (unsigned open = 1; open > 0;) {
        int t = cps_dsl_lex_raw(v, at, p->scanner);
        if (t == END)
            return END;
        open += t == '{';
        open -= t == '}';
    }
    return ';';
}

// The same for parentheses, `open` of them: a `;` inside belongs to what is thrown away, as in the
// loops of C. A brace ends the search, since a `)` may be what is missing.
static int
skip_parens(CPS_DSL_YYSTYPE *v, CPS_DSL_YYLTYPE *at, cps_dsl_parser *p, unsigned open)
{
    int t = '(';
    while (open > 0 && t != END && t != '{' && t != '}') {
        t = cps_dsl_lex_raw(v, at, p->scanner);
        open += t == '(';
        open -= t == ')';
    }
    return t == ')' ? cps_dsl_lex_raw(v, at, p->scanner) : t;
}

static int
step_over(CPS_DSL_YYLTYPE *at, cps_dsl_parser *p)
{
    *at = p->rest;
    cps_dsl_scan_skip(p, p->rest.end - p->rest.begin);
    p->rest.end = 0;
    return T_REST;
}

static int
cps_dsl_yylex(CPS_DSL_YYSTYPE *v, CPS_DSL_YYLTYPE *at, cps_dsl_parser *p)
{
    if (p->part && p->before != T_PART) {
        *at = (cps_span){p->file, p->pos, p->pos};
        return p->before = T_PART;
    }
    if (p->rest.end && p->pos == p->rest.begin)
        return step_over(at, p);
    int t = p->skip_paren ? skip_parens(v, at, p, 1) : cps_dsl_lex_raw(v, at, p->scanner);
    p->skip_paren = false;
    if (p->skipping && t == '(')
        t = skip_parens(v, at, p, 1);
    if (p->skipping && t == '{')
        t = skip_braces(v, at, p);
    if (t == ';' || t == '}')
        p->skipping = false;
    if (t == END)
        *at = (cps_span){p->file, p->pos, p->pos};
    if (p->later)
        cps_dsl_note_body(p, t);
    return t;
}

/* ---- messages ---- */

enum { MAX_EXPECTED = 128, MAX_SOURCE = 1 << 26 };

// What the grammar would take instead of the token it met. Texts are those of the token table,
// quotes off: "let", ";", "a name".
typedef struct expected {
    int n;
    char text[MAX_EXPECTED][24];
} expected;

static void
token_text(yysymbol_kind_t k, char out[24])
{
    const char *s = yysymbol_name(k);
    size_t n = strlen(s);
    if (s[0] == '\'') {
        bool escaped = s[1] == '\\';
        out[0] = s[escaped ? 2 : 1];
        out[1] = 0;
        return;
    }
    n = n < 23 ? n : 23;
    memcpy(out, s, n);
    out[n] = 0;
}

static bool
expects(const expected *x, const char *text)
{
    for (int i = 0; i < x->n; i++)
        if (cps_streq(x->text[i], text))
            return true;
    return false;
}

// Groups stand for their members: "an expression" instead of the seventeen tokens that begin one.
// A group is recognised by its key; members are separated by blanks, "a name" written `~name`.
typedef struct group {
    const char *name, *key, *members;
} group;

static const group groups[] = {
    {"a declaration (op, block, leaf, fn, enum, const, use)", "leaf",
     " use const enum op block leaf fn ~end "},
    {"a statement", "let",
     " let var if for loop while when stage break continue return assert where param cost "
     "resources tolerance cases layout priority ~name ~int ~number ~string hbm sbuf psum reg ram "
     "vreg ( [ { "},
    {"an expression", "an integer",
     " ~name ~int ~number ~string hbm sbuf psum reg ram vreg ( [ { - ! "},
    {"an assignment", "<+", " = += -= *= <- <+ "},
    {"an operator", "'",
     " .. || && < > <= >= == != in | & << >> + - * / % @ ? [ ( . ' "},
    {"an operator", "*", " .. || && < > <= >= == != in | & << >> + - * / % @ ? "},
    {"a mark", "reduce", " ~name on reduce priority "},
    {"a space word", "sbuf", " hbm sbuf psum reg ram vreg "},
};

static bool
is_member(const group *g, const char *text)
{
    static const char *const phrases[][2] = {
        {"a name", "~name"},     {"an integer", "~int"},
        {"a number", "~number"}, {"a string", "~string"},
        {"the end of the file", "~end"},
    };
    char word[32];
    for (size_t i = 0; i < cps_countof(phrases); i++)
        if (cps_streq(text, phrases[i][0]))
            text = phrases[i][1];
    snprintf(word, sizeof word, " %s ", text);
    return strstr(g->members, word) != NULL;
}

static void
put_token(cps_buf *b, const char *text)
{
    bool phrase = strchr(text, ' ') || cps_streq(text, "string");
    cps_buf_printf(b, phrase ? "%s" : "`%s`", text);
}

// "an operator, a mark or `;`"; nothing when the list would be too long to help.
static void
put_expected(cps_buf *b, expected x)
{
    const char *part[8];
    int n = 0;
    for (size_t g = 0; g < cps_countof(groups); g++) {
        if (!expects(&x, groups[g].key))
            continue;
        part[n++] = groups[g].name;
        int kept = 0;
        for (int i = 0; i < x.n; i++)
            if (!is_member(&groups[g], x.text[i]))
                memmove(x.text[kept++], x.text[i], sizeof x.text[i]);
        x.n = kept;
        if (n == 4)
            break;
    }
    if (n + x.n > 6 || n + x.n == 0)
        return;
    cps_buf_puts(b, "; expected ");
    for (int i = 0; i < n + x.n; i++) {
        if (i)
            cps_buf_puts(b, i == n + x.n - 1 ? " or " : ", ");
        if (i < n)
            cps_buf_puts(b, part[i]);
        else
            put_token(b, x.text[i - n]);
    }
}

static bool
is_one_of(const char *text, const char *list)
{
    char word[32];
    snprintf(word, sizeof word, " %s ", text);
    return strstr(list, word) != NULL;
}

// The way out of the slips that are made most.
static void
put_hint(cps_dsl_parser *p, const char *got, const expected *x)
{
    cps_diags *d = p->diags;
    bool more = expects(x, "*"), start = expects(x, "an integer");
    if (is_one_of(got, " <- <+ ") && more)
        cps_help(d, "`%s` is one token, a DMA arrow; for a comparison write `a %c %cb`, with a "
                    "space",
                 got, got[0], got[1]);
    else if (cps_streq(got, "=") && more)
        cps_help(d, "`==` compares; `=` is an assignment, which is a statement of its own");
    else if (cps_streq(got, "+") && start)
        cps_help(d, "there is no unary plus");
    else if (cps_streq(got, "'") && start)
        cps_help(d, "`'` is the postfix transpose; there are no character literals");
    else if (is_one_of(got, " < > <= >= == != in ") && expects(x, "&&") && !expects(x, "<"))
        cps_help(d, "comparisons do not chain: write `a < b && b < c`");
    else if (cps_streq(got, "(") && x->n == 1 && expects(x, "a name"))
        cps_help(d, "a loop is written `for NAME in RANGE { ... }`, as in `for i in 0..n { ... }`");
    else if (x->n == 1 && expects(x, "("))
        cps_help(d, "conditions stand in parentheses");
    else if (expects(x, "{") && !start && x->n <= 16)
        cps_help(d, "bodies are always in braces");
}

static bool
is_word(const char *s)
{
    return s[0] >= 'a' && s[0] <= 'z' && !strchr(s, ' ');
}

static int
yyreport_syntax_error(const yypcontext_t *ctx, cps_dsl_parser *p)
{
    yysymbol_kind_t token = yypcontext_token(ctx);
    cps_span at = *yypcontext_location(ctx);
    p->skipping = token != YYSYMBOL_YYEMPTY;
    p->skip_paren = cps_streq(yysymbol_name(token), "'('");
    if (p->unknown_mark) { // reported where it stood; this is its shadow
        p->unknown_mark = false;
        return 0;
    }
    yysymbol_kind_t kinds[MAX_EXPECTED];
    int n = yypcontext_expected_tokens(ctx, kinds, MAX_EXPECTED);
    expected x = {.n = 0};
    for (int i = 0; i < n; i++)
        if (kinds[i] != YYSYMBOL_YYerror && kinds[i] != YYSYMBOL_T_REST && kinds[i] != YYSYMBOL_T_PART)
            token_text(kinds[i], x.text[x.n++]);
    char got[24];
    token_text(token, got);

    size_t size;
    const char *text = cps_diags_source_text(p->diags, p->file, &size);
    int shown = at.end <= size ? (int)CPS_MIN(at.end - at.begin, 40u) : 0;
    if (is_word(got) && expects(&x, "a name") && !expects(&x, "an integer") &&
        !expects(&x, "reduce")) {
        cps_error(p->diags, CPS_E2106, at, "`%s` is a reserved word and cannot be a name", got);
        return 0;
    }
    cps_buf b = {0};
    if (cps_streq(got, "a name"))
        cps_buf_printf(&b, "unexpected name `%.*s`", shown, text + at.begin);
    else if (cps_streq(got, "an integer") || cps_streq(got, "a number"))
        cps_buf_printf(&b, "unexpected number `%.*s`", shown, text + at.begin);
    else {
        cps_buf_puts(&b, "unexpected ");
        put_token(&b, strncmp(got, "a ", 2) == 0 || strncmp(got, "the ", 4) == 0
                          ? strchr(got, ' ') + 1
                          : got);
    }
    put_expected(&b, x);
    cps_error(p->diags, CPS_E2104, at, "%s", b.data);
    cps_buf_fini(&b);
    put_hint(p, got, &x);
    return 0;
}

// Only exhaustion comes here: syntax errors have a function of their own.
static void
cps_dsl_yyerror(const CPS_DSL_YYLTYPE *at, cps_dsl_parser *p, const char *why)
{
    (void)why;
    cps_error(p->diags, CPS_E2105, *at, "the text nests deeper than the parser follows");
}

cps_ast_file *
cps_dsl_parse(cps_arena *a, cps_symtab *syms, cps_diags *d, uint32_t source, bool later, bool *ok)
{
    unsigned before = cps_diags_errors(d);
    size_t n;
    const char *text = cps_diags_source_text(d, source, &n);
    cps_dsl_parser p = {.arena = a, .syms = syms, .diags = d, .file = source, .later = later};
    p.out = cps_new(a, cps_ast_file);
    p.out->source = source;
    p.out->path = cps_diags_source_name(d, source);
    if (n > MAX_SOURCE) {
        cps_error(d, CPS_E2105, CPS_NOSPAN, "a source of %zu bytes; the limit is %d", n,
                  MAX_SOURCE);
    } else if (!cps_dsl_scan_begin(&p, text, n)) {
        cps_bug("the scanner did not start");
    } else {
        cps_dsl_yyparse(&p);
        cps_dsl_scan_end(&p);
    }
    *ok = cps_diags_errors(d) == before;
    return p.out;
}

const cps_ast_body *
cps_ast_whole(cps_ast_body *b)
{
    cps_ast_later *w = b->later;
    if (!w)
        return b;
    b->later = NULL;
    size_t n;
    const char *text = cps_diags_source_text(w->diags, w->span.file, &n);
    cps_dsl_parser p = {.arena = w->arena, .syms = w->syms, .diags = w->diags, .file = w->span.file,
                        .pos = w->span.begin, .part = b, .out = &(cps_ast_file){0}};
    if (!cps_dsl_scan_begin(&p, text + w->span.begin, w->span.end + 1 - w->span.begin)) // its brace ends it
        cps_bug("the scanner did not start");
    cps_dsl_yyparse(&p);
    cps_dsl_scan_end(&p);
    return b;
}
