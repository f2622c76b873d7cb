"""The published schema of BIR JSON, written out from its public description a second time: rows of
object, member, form and presence, and the rules that hold between objects. Knows nothing of codegen/bir.

Forms: str int bool num, any, ints (list), strs, pairs ([[step, number], ...]), edges, word (string or
number), =a|b|c one of these words, x a nested object of kind x, [x] a list of them. Presence: ! always,
? may be left out. `copse` is the one member of ours and may stand anywhere."""

ENGINES = "Pool|Activation|PE|DMA|DVE|SP|ALL"
ORIGINS = "Internal|Penguin|NKI"
DTYPES = ("uint8|int8|float4_e2m1fn_x4|float8e3|float8e4|float8_e4m3fn|float8_e8m0fnu|float8e5|float8_e4m3fn_x4|"
          "float8_e5m2_x4|uint16|int16|bfloat16|float16|uint32|int32|float32|float32r|uint64|int64")
BYTES = {"float8e3": 1, "float8e4": 1, "float8e5": 1, "float8_e4m3fn": 1, "float8_e8m0fnu": 1, "bfloat16": 2,
         "float32r": 4, "float8_e4m3fn_x4": 4, "float8_e5m2_x4": 4, "float4_e2m1fn_x4": 2}

ROWS = f"""
module    functions [function] !      nki_functions [function] ?  queues [queue] ?       version int !
module    arch str ?                  revision word ?             artifact_path str ?    artifact_info any ?
module    attributes any ?            call_to_physical_memlocs any ?
function  name str !                  origin ={ORIGINS} ?         allocations [storage] !  blocks [block] !
block     name str !                  instructions [inst] !       arguments any ?
inst      name str !                  origin ={ORIGINS} !         opcode str !           engine ={ENGINES} !
inst      engine_id int !             scheduled_start int !       scheduled_end int !    optin_passes strs !
inst      ins [arg] !                 outs [arg] !                indirection_ins [arg] ?  dependencies edges ?
inst      loop_carried_dependencies edges ?  unroll_dependencies any ?  sync_info sync ?  loopnest strs ?
inst      predicates any ?            order any ?                 debug any ?
inst      dma_trigger_debug_update_semaphore_id int ?
sync      on_wait [item] !            on_update [item] !
item      mode str !                  id int !                    value int ?            by =dma ?
physical_ap  kind =physical_ap !      ap pairs !                  offset int !           dtype ={DTYPES} !
physical_ap  memref str !             memsetref str !             access_shape ints !
physical_ap  dynamic_ap_info any ?    memref_owner_func str ?
register_ap  kind =register_ap !      ap pairs !                  dtype ={DTYPES} !      memsetref str ?
register_ap  regref str !             is_regloc_offset bool !     reg_ap_offset int !    const_ap_offset int !
register_ap  reg_sub_tensor_id int ?  const_sub_tensor_id int ?
imm_value    kind =imm_value !        dtype ={DTYPES} ?           value word !
symbolic_imm_value  kind =symbolic_imm_value !  dtype ={DTYPES} ?  memref str ?          offset int ?
register_access  kind =register_access !  dtype ={DTYPES} ?       regref str !
set       name str !                  tensor_class word ?         addr_space =Local|Shared|Debug ?
set       kind =ExternalInput|ExternalOutput|Const|Internal|Pointer|InternalInterface !
set       dtype ={DTYPES} !           tensor_shape ints !         partition_dim int ?    memorylocations [location] !
location  name str !                  type =Unallocated|Input|Output|DRAM|SB|PSUM|RNGSTATE|REG !
location  addr int ?                  bank int ?                  base int ?             pack_id_hint int ?
location  allocated bool ?            user_allocated bool ?       pinned bool ?          runtime_reserved bool ?
location  tensor_id int ?             var_id int ?                table_entry_id int ?   memLocSetId int ?
location  dims ints ?                 alias any ?
register  name str !                  numPhysicalRegs int !
queue     name str !                  num_dma_engines int !       engine ={ENGINES} ?    dge_type str ?
queue     dma_blocks [dma_block] ?
dma_block name str !                  block_id int !              section_start word ?   priority_class word ?
dma_block sync_info sync !            descriptors [descriptor] !
descriptor  opcode str !              ins [arg] !                 outs [arg] !
"""

# members beyond the header, by instruction; the first word of a line is the instruction
OPS = """
Matmult accumulation_flag psum_zero_region replication_resolution replication_shift_amnt replication_num_rows
  is_transpose is_fmap_onezero is_weight_onezero tile_size tile_position ifmap_quant_offset weights_quant_offset perf_mode
Activation scale alpha func acc op0 op1 reduce_op can_read_uninit is_activate2 reverse0 reverse1
TensorReduce op axis apply_transpose negate
Pool func
TensorScalar op0 const0 reverse0 op1 const1 reverse1
TensorScalarPtr op0 reverse0 op1 reverse1 apply_transpose is_tensor_scalar_addr is_scalar_tensor_tensor
  is_tensor_tensor_scan negate_second_output acc
TensorScalarCache op0 reverse0 op1 reverse1 mode acc
TensorTensor op acc
TensorScalarAffineSelect base pattern channel_multiplier compare_op fill_value
Iota base pattern channel_multiplier
Memset mode constant
TensorCopy can_read_uninit
CopyPredicated reverse_pred reduce_op accumulator_cmd
StreamShuffle mask
DMACopy queue dge_type duplicate mode oob_is_err transpose_op constants cce_op replica_groups remote_notification
  can_read_uninit dma_qos use_gpsimd_dma
DMATrigger queue dge_type duplicate dma_blocks
IndirectLoad queue dge_type duplicate runtime_semaphore_wait_value
IndirectSave queue dge_type duplicate runtime_semaphore_wait_value
IndirectSaveAccumulate queue dge_type duplicate num_indices entry_step_elements op
CompareAndBranch comp_op on_true on_false
UncondBranch target
GroupResetSemaphores mode sema_group
Drain is_reset_sema
RegisterAlu op is_64bit
InlineASMBytes asm_bytes sync_type latency_estimate
DMADescriptorCopy num_tiling_dimensions can_read_uninit
DMADescriptorCCE num_tiling_dimensions constants op
DMADescriptorTranspose num_tiling_dimensions transpose_op
Reciprocal
Max
MaxIndex
StreamTranspose
TensorLoad
NoOp
EventSemaphore
AllEngineBarrier
Halt
RegisterMove
"""
# instructions whose name or members are ours, and what they stand for
OURS = {"RangeSelect": "base comp_op0 comp_op1 reduce_cmd", "BNStats": "", "BNAggregate": "",
        "MatchReplace": "replace_value", "PartitionReduce": "op axis", "LoadActFuncSet": "func_set"}
# the one instruction that writes all of its members, defaults or not
ALL_MEMBERS = ("Matmult",)


def tables():
    rows, ops, last = {}, {}, None
    for line in ROWS.strip().split("\n"):
        w = line.split()
        for i in range(1, len(w), 3):
            rows.setdefault(w[0], {})[w[i]] = (w[i + 1], w[i + 2] == "!")
    for line in OPS.strip().split("\n"):
        w = line.split()
        if line[0] != " ":
            last = w.pop(0)
            ops[last] = []
        ops[last] += w
    ops.update({k: v.split() for k, v in OURS.items()})
    return rows, ops


TABLES, MEMBERS = tables()


class Checker:
    """Problems of one document, each with its path."""

    def __init__(self, doc):
        self.doc, self.bad = doc, []
        self.names = {k: set() for k in ("set", "location", "register", "block", "inst", "queue", "dma_block")}
        self.sets, self.where = {}, {}
        self.visit("module", doc, "")
        if not self.bad:
            self.between()

    def say(self, path, what):
        if len(self.bad) < 20:
            self.bad.append(f"{path or '/'}: {what}")

    def kind_of(self, family, v):
        if family == "arg":
            return v.get("kind")
        if family == "storage":
            return "register" if "numPhysicalRegs" in v else "set"
        return family

    def fits(self, form, v, path):
        one = {"str": str, "int": int, "bool": bool}
        if form in one:
            return isinstance(v, one[form]) and (form != "int" or not isinstance(v, bool))
        if form == "any":
            return True
        if form == "word":
            return isinstance(v, (str, int, float))
        if form in ("ints", "strs"):
            t = int if form == "ints" else str
            return isinstance(v, list) and all(isinstance(x, t) for x in v)
        if form == "pairs":
            return isinstance(v, list) and all(isinstance(x, list) and len(x) == 2 and
                                               all(isinstance(y, int) for y in x) for x in v)
        if form == "edges":
            return isinstance(v, list) and all(isinstance(x, list) and len(x) == 2 and isinstance(x[0], str) and
                                               x[1] in ("Ordered", "Anti", "Output", "Flow") for x in v) and v
        if form[0] == "=":
            return v in form[1:].split("|")
        if form[0] == "[":
            if not isinstance(v, list):
                return False
            for i, x in enumerate(v):
                self.visit(form[1:-1], x, f"{path}/{i}")
            return True
        self.visit(form, v, path)
        return True

    def visit(self, family, v, path):
        if not isinstance(v, dict):
            return self.say(path, f"no object of kind {family}")
        if list(v) != sorted(v):
            self.say(path, "members are not sorted")
        kind = self.kind_of(family, v)
        if kind not in TABLES:
            return self.say(path, f"unknown kind {kind} of {family}")
        own = []
        if kind in ("inst", "descriptor"):
            if v.get("opcode") not in MEMBERS:
                return self.say(path, f"unknown opcode {v.get('opcode')}")
            own = MEMBERS[v["opcode"]]
            if v["opcode"] in ALL_MEMBERS:
                for key in own:
                    if key not in v:
                        self.say(path, f"{v['opcode']} has no {key}")
        for key, (form, always) in TABLES[kind].items():
            if key in v and not self.fits(form, v[key], f"{path}/{key}"):
                self.say(f"{path}/{key}", f"is no {form}: {str(v[key])[:60]}")
            if always and key not in v:
                self.say(path, f"{kind} has no {key}")
        for key in v:
            if key != "copse" and key not in TABLES[kind] and key not in own:
                self.say(path, f"{v.get('opcode', kind)} has no member {key}")
        if kind in self.names:
            if v.get("name") in self.names[kind]:
                self.say(path, f"{kind} {v['name']} is given twice")
            self.names[kind].add(v.get("name"))
        if kind == "set":
            for x in v.get("memorylocations", []):
                self.where[x.get("name")] = (v, x)

    def refer(self, kind, name, path):
        if name not in self.names[kind]:
            self.say(path, f"{kind} {name} does not exist")

    def operand(self, v, path):
        if "regref" in v:
            self.refer("register", v["regref"], path)
        if v["kind"] == "register_ap":
            return
        if "memref" in v:
            self.refer("location", v["memref"], path)
        if v["kind"] != "physical_ap" or v["memref"] not in self.where:
            return
        mset, loc = self.where[v["memref"]]
        if v["memsetref"] != mset["name"]:
            self.say(path, f"{v['memref']} is no place of {v['memsetref']}")
        if v["access_shape"] != [n for _, n in v["ap"]]:
            self.say(path, "access_shape is not that of the pattern")
        # every element lies inside the location: at both ends of the walk
        es = es_of(v["dtype"])
        lo = v["offset"] + sum(min(0, s * (n - 1)) for s, n in v["ap"])
        hi = v["offset"] + sum(max(0, s * (n - 1)) for s, n in v["ap"])
        if loc["type"] in ("SB", "PSUM"):
            parts, size = loc["dims"]
            if v["ap"][0][1] > 128 or hi >= parts * (size // es):
                self.say(path, f"reaches element {hi} of {parts} x {size // es}")
        else:
            size = es_of(mset["dtype"])
            for n in mset["tensor_shape"]:
                size *= n
            if hi * es >= max(size, mset.get("copse", {}).get("bytes", 0)):
                self.say(path, f"reaches byte {hi * es} of {size}")
        if lo < 0:
            self.say(path, "begins before the location")

    def between(self):
        if self.doc["version"] != 2:
            self.say("/version", "the writer's version is 2")
        seen = set()
        for fi, f in enumerate(self.doc["functions"]):
            for b in f["blocks"]:
                for i in b["instructions"]:
                    path = f"/functions/{fi}/{b['name']}/{i['name']}"
                    for key in ("ins", "outs", "indirection_ins"):
                        for v in i.get(key, []):
                            self.operand(v, f"{path}/{key}")
                    if i.get("indirection_ins") == [] or i.get("dependencies") == []:
                        self.say(path, "an empty list is left out")
                    for name, _ in i.get("dependencies", []):
                        if name not in seen:
                            self.say(path, f"depends on {name}, which does not come before it")
                    for key, kind in (("queue", "queue"), ("on_true", "block"), ("on_false", "block"), ("target", "block")):
                        if key in i:
                            self.refer(kind, i[key], path)
                    for name in i.get("dma_blocks", []):
                        self.refer("dma_block", name, path)
                    seen.add(i["name"])
        for q in self.doc.get("queues", []):
            for b in q.get("dma_blocks", []):
                for d in b["descriptors"]:
                    for v in d["ins"] + d["outs"]:
                        self.operand(v, f"/queues/{q['name']}/{b['name']}")
                    counts = [1, 1]
                    for k, v in enumerate((d["ins"][0], d["outs"][0])):
                        for _, n in v["ap"]:
                            counts[k] *= n
                    if counts[0] != counts[1]:
                        self.say(f"/queues/{q['name']}/{b['name']}", f"moves {counts[0]} elements to {counts[1]}")


def es_of(dtype):
    return BYTES.get(dtype) or int("".join(c for c in dtype if c.isdigit())) // 8


def problems(doc):
    return Checker(doc).bad
