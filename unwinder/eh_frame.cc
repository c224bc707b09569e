// SPDX-License-Identifier: Apache-2.0
#include "unwinder/eh_frame.h"

#include <algorithm>
#include <string_view>

namespace flamed::unwinder {
namespace {

constexpr std::uint32_t kLength64 = 0xffff'ffff;  // the 64-bit length follows
constexpr std::uint32_t kLengthReserved = 0xffff'fff0;

}  // namespace

FrameRecords::FrameRecords(const FrameSection& section, Architecture architecture)
    : section_(section), architecture_(architecture), cies_(1) {}

/*
 * A record of either section:
 *
 *   u32 length          0: terminator (.eh_frame); 0xffffffff: 64-bit DWARF, u64 length follows
 *   u32 or u64 id       .eh_frame: 0 for a CIE (always 4 bytes there), else the distance from here back to the CIE
 *                       .debug_frame: all ones for a CIE, else the CIE's offset in the section
 *   ...                 `length` bytes from the id on
 */
FrameRecords::Header FrameRecords::read_header(std::uint64_t offset, Record& record, std::uint64_t& next_offset) const {
  if (offset >= section_.bytes.size()) return Header::kEnd;
  ByteReader reader(section_.bytes.subspan(static_cast<std::size_t>(offset)));
  if (reader.left() < 4) return Header::kDamaged;
  record.offset = offset;
  std::uint64_t length = reader.u32();
  record.is_64bit = length == kLength64;
  if (record.is_64bit) {
    length = reader.u64();
  } else if (length >= kLengthReserved) {
    return Header::kDamaged;
  }
  if (!reader.ok()) return Header::kDamaged;
  const std::uint64_t id_offset = static_cast<std::uint64_t>(reader.at() - section_.bytes.data());
  if (length > reader.left()) return Header::kDamaged;
  next_offset = id_offset + length;
  if (length == 0) return Header::kTerminator;

  record.body = ByteReader(reader.take(length));
  if (section_.format == FrameSection::Format::kEhFrame) {
    const std::uint64_t id = record.body.u32();
    record.is_cie = id == 0;
    record.cie_offset = id_offset - id;
    if (id > id_offset) return Header::kTooShort;
  } else {
    const std::uint64_t id = record.is_64bit ? record.body.u64() : record.body.u32();
    record.is_cie = id == (record.is_64bit ? ~std::uint64_t{0} : std::uint64_t{0xffff'ffff});
    record.cie_offset = id;
  }
  return !record.body.ok() ? Header::kTooShort : Header::kRecord;
}

FrameRecords::Next FrameRecords::next(Fde& fde) {
  for (;;) {
    Record record;
    std::uint64_t next_offset = 0;
    const Header header = read_header(at_, record, next_offset);
    switch (header) {
      case Header::kEnd:
        return Next::kFinished;
      case Header::kDamaged:
        return Next::kDamaged;
      case Header::kTerminator:
        if (section_.ends_at_terminator) return Next::kFinished;
        at_ = next_offset;
        continue;
      case Header::kTooShort:
        at_ = next_offset;
        return Next::kBadFde;
      case Header::kRecord:
        at_ = next_offset;
        break;
    }
    if (record.is_cie) continue;  // read when an FDE refers to it
    fde.cie = cie_at(record.cie_offset);
    if (!cies_[fde.cie].valid) return Next::kBadCie;
    return parse_fde(record, fde) ? Next::kFde : Next::kBadFde;
  }
}

std::uint32_t FrameRecords::cie_at(std::uint64_t offset) {
  if (offset == last_cie_offset_) return last_cie_;
  std::uint32_t index = 0;
  if (const auto known = cie_by_offset_.find(offset); known != cie_by_offset_.end()) {
    index = known->second;
  } else if (cie_by_offset_.size() < kMaxCies) {
    Cie cie = parse_cie(offset);
    if (cie.valid) {
      index = static_cast<std::uint32_t>(cies_.size());
      cies_.push_back(cie);
    }
    cie_by_offset_.emplace(offset, index);
  }
  last_cie_offset_ = offset;
  last_cie_ = index;
  return index;
}

/*
 * After the header:
 *
 *   u8 version          .eh_frame: 1 or 3; .debug_frame: 1, 3 or 4
 *   string augmentation
 *   u8 address size, u8 segment selector size     version 4 only
 *   pointer             only with augmentation "eh" (gcc 2)
 *   uleb code alignment, sleb data alignment
 *   return address register: u8 in version 1, uleb after
 *   uleb length, bytes  only with an augmentation that starts with 'z'
 *   instructions
 */
Cie FrameRecords::parse_cie(std::uint64_t offset) const {
  Cie cie;
  Record record;
  std::uint64_t next_offset = 0;
  if (read_header(offset, record, next_offset) != Header::kRecord || !record.is_cie) return cie;
  ByteReader& body = record.body;
  if (body.left() > kMaxCieBytes) return cie;

  CfaContext& context = cie.context;
  context.architecture = architecture_;
  context.bases = PointerBases{.section = section_.bytes.data(),
                               .address = section_.address,
                               .text = section_.text_address,
                               .data = section_.data_address};

  const std::uint8_t version = body.u8();
  if (version != 1 && version != 3 && version != 4) return cie;

  std::size_t letters = 0;
  {
    ByteReader ahead = body;
    while (ahead.u8() != 0) ++letters;
    if (!ahead.ok()) return cie;
  }
  const std::span<const std::byte> augmentation = body.take(letters);
  body.skip(1);

  if (version >= 4) {
    context.bases.address_size = body.u8();
    const std::uint8_t segment_size = body.u8();
    if ((context.bases.address_size != 4 && context.bases.address_size != 8) || segment_size != 0) return cie;
  }
  const std::string_view name(reinterpret_cast<const char*>(augmentation.data()), augmentation.size());
  if (name == "eh") body.skip(context.bases.address_size);
  context.code_alignment = body.uleb();
  context.data_alignment = body.sleb();
  context.ra_register = version == 1 ? body.u8() : body.uleb();
  if (!name.empty() && name != "eh" && !parse_augmentation(body, augmentation, cie)) return cie;
  if (!body.ok()) return cie;

  RememberedStates stack;
  CfaProgram program(context, body.take(body.left()), stack);
  // An advance has no meaning in a CIE: the states before and after it are one.
  CfaProgram::Stop stop = CfaProgram::Stop::kAdvanced;
  while (stop == CfaProgram::Stop::kAdvanced) stop = program.run();
  if (stop == CfaProgram::Stop::kFailed) return cie;
  cie.initial = program.state();
  cie.valid = true;
  return cie;
}

bool FrameRecords::parse_augmentation(ByteReader& body, std::span<const std::byte> letters, Cie& cie) const {
  // Without the leading 'z' the length of an unknown augmentation's data is not known.
  if (static_cast<char>(letters[0]) != 'z') return false;
  cie.has_augmentation_data = true;
  const std::uint64_t length = body.uleb();
  const std::byte* const start = body.at();
  if (length > body.left()) return false;
  // The data is read with the section's end as its limit, then skipped by its stated length.
  ByteReader data(std::span<const std::byte>(start, static_cast<std::size_t>(length)));
  body.skip(length);

  for (const std::byte letter : letters.subspan(1)) {
    switch (static_cast<char>(letter)) {
      case 'R':  // how FDEs write addresses
        cie.context.pointer_encoding = data.u8();
        break;
      case 'L':  // how FDEs write the address of their exception table
        data.skip(1);
        break;
      case 'P': {  // the personality routine
        const std::uint8_t encoding = data.u8();
        if (encoding == kEncodingOmit) break;
        // Only its size matters, not its base or an indirection.
        std::uint8_t direct = encoding & static_cast<std::uint8_t>(~kEncodingIndirect);
        if ((direct & kEncodingBaseMask) != kEncodingAligned) direct &= kEncodingFormatMask;
        if (!read_encoded_pointer(data, direct, cie.context.bases)) return false;
        break;
      }
      case 'S':
        cie.signal_frame = true;
        break;
      case 'B':  // arm64: return addresses are signed with key B. Removing the signature needs no key.
      case 'G':  // arm64: stack memory is tagged
        break;
      default:
        // The length gives the start of the instructions, but the meaning of this letter is unknown.
        return false;
    }
  }
  return data.ok();
}

/*
 * After the header: address and size of the function (encoded as the CIE says in .eh_frame, plain in .debug_frame),
 * augmentation data (uleb length, bytes) where the CIE has some, instructions.
 */
bool FrameRecords::parse_fde(Record& record, Fde& fde) const {
  const Cie& cie = cies_[fde.cie];
  ByteReader& body = record.body;
  const std::uint8_t encoding = cie.context.pointer_encoding;
  const PointerBases& bases = cie.context.bases;
  const std::optional<std::uint64_t> begin = read_encoded_pointer(body, encoding, bases);
  if (!begin) return false;
  const std::optional<std::uint64_t> size = read_encoded_number(body, encoding, bases.address_size);
  if (!size) return false;
  if (cie.has_augmentation_data) body.skip(body.uleb());
  if (!body.ok()) return false;
  fde.begin = *begin;
  fde.size = *size;
  fde.instructions = body.take(body.left());
  return true;
}

}  // namespace flamed::unwinder
