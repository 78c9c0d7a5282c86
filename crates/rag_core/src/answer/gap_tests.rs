//! Tests of telling silence from claims.

use super::*;

#[test]
fn no_name_of_a_part_is_left() {
    assert!(SILENT.as_ref().is_some_and(|silent| silent.len() == SILENCE.len()));
    assert!(SILENCE.iter().map(whole).all(|pattern| !pattern.contains('<')));
}

#[track_caller]
fn check(question: &str, sentences: &[&str], expected: bool) {
    let wrong: Vec<&&str> = sentences.iter().filter(|one| is_gap(question, one) != expected).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn silence_is_told_from_claims() {
    let question = "When was the tower built, and who paid the 12 masons?";
    let silent = [
        "The passages do not say who paid for it.",
        "The documents don't explicitly mention the 12 masons. [1]",
        "Who paid is not stated in the passages.",
        "The context provides no information about the owner.",
        "Die Dokumente nennen den Bauherrn nicht.",
        "Les documents ne disent pas qui a payé.",
    ];
    check(question, &silent, true);
    let claims = [
        "The tower was built in 1901.",
        "The passages do not say who paid, but it was the king.",
        "The passages do not mention the 13 masons.",
        "The documents are not signed.",
        "The tower does not contain stairs.",
        "The passages do not say it; the king paid.",
        "",
    ];
    check(question, &claims, false);
}

#[test]
fn silence_of_the_documents_is_found_in_english() {
    let silent = [
        "The provided documents do not mention the owner.",
        "The context does not contain information about the owner.",
        "The given context doesn’t specify who paid.",
        "There is no information in the documents about the owner.",
        "There is no specific mention of the owner in the provided passages.",
        "No information about the owner is given in the documents.",
        "- **Owner:** The documents do not name him.",
        "Unfortunately, the documents provided do not say who paid.",
        "I'm sorry, the passages you gave me do not cover this.",
        "As for the owner, the retrieved documents do not name him. [2]",
        "Based on the context, the documents do not state who paid.",
        "The information provided in the passages does not include a date.",
        "The provided information does not mention the owner.",
        "The context information does not answer this.",
        "The passages about the tower do not seem to mention the owner.",
        "The source documents do not describe it.",
        "These two excerpts do not give a reason.",
        "None of the passages mention the owner.",
        "None of these documents explicitly states who paid.",
        "Passage [2] does not mention the owner.",
        "Documents [1] and [2] do not mention the owner.",
        "The documents have no information on it.",
        "The documents do not have any details on it.",
        "The sources say nothing about the owner.",
        "The owner is not explicitly mentioned anywhere in the given documents.",
        "It is not clear from the documents who paid.",
        "Regarding the owner, his name is not mentioned in any of the passages.",
        "There is no indication in the passages that the king paid.",
        "The owner isn’t named by the passages, nor is the year.",
    ];
    check("Who owned the tower?", &silent, true);
    let claims = [
        "Travel documents do not have to include a photo.",
        "The travel documents do not include a photo.",
        "The documents do not have to include a photo.",
        "These documents do not need to contain a stamp.",
        "The documents do not necessarily include a photo.",
        "Documents do not include a photo.",
        "The context menu does not contain Delete.",
        "The text field does not contain a name.",
        "The document type does not specify a size.",
        "The owner of the documents does not state his name.",
        "The documents of the owner do not contain a stamp.",
        "A copy of the documents does not include a photo.",
        "Water sources do not provide power.",
        "The source code does not contain comments.",
        "The fee is not included in the travel documents.",
        "The photo is not provided with the travel documents.",
        "It is not described in the context menu.",
        "It is not defined in the context of the law.",
        "The king paid for it, the documents do not say when.",
        "The king paid and the documents do not say when.",
        "There is no data in the context menu of the editor.",
        "There is no information about it in the travel documents.",
        "The passages do not close at night.",
        "Other documents do not include a photo.",
        "Your documents do not include a photo.",
        "It was built by the king, who is not named in the documents.",
        "There is no data in the text field.",
        "There is no stamp in the documents.",
        "The documents do not only mention the king.",
    ];
    check("Who owned the tower?", &claims, false);
}

#[test]
fn silence_of_the_documents_is_found_in_german() {
    let silent = [
        "Die Dokumente enthalten keine Angaben zu dem Besitzer.",
        "Die bereitgestellten Dokumente erwähnen den Besitzer nicht.",
        "Der Kontext enthält keine Informationen über den Besitzer.",
        "Die vorliegenden Passagen sagen nichts über den Besitzer.",
        "Die Dokumente sagen nicht, wer bezahlt hat.",
        "Die Dokumente geben nicht an, wer bezahlt hat.",
        "Die Texte geben darüber keine Auskunft.",
        "Die Quellen machen dazu keine Angaben.",
        "Die Passagen gehen nicht darauf ein.",
        "Dazu enthalten die Dokumente keine Angaben.",
        "Zum Besitzer machen die Dokumente keine Angaben.",
        "Wer bezahlt hat, nennen die Dokumente nicht.",
        "Leider nennen die Dokumente den Besitzer nicht.",
        "In den Dokumenten steht nicht, wer bezahlt hat.",
        "In den Dokumenten gibt es keine Angaben dazu.",
        "In den Dokumenten wird der Besitzer nicht genannt.",
        "Im Kontext ist der Besitzer nicht angegeben.",
        "Der Besitzer wird in den Dokumenten nicht erwähnt.",
        "Das steht nicht in den Dokumenten.",
        "Es gibt in den Dokumenten keine Informationen dazu.",
        "Es gibt keine Informationen zu dem Besitzer in den Dokumenten.",
        "Aus den Dokumenten geht nicht hervor, wer bezahlt hat.",
        "Den Dokumenten lässt sich nicht entnehmen, wer bezahlt hat.",
        "Wer bezahlt hat, wird in den Dokumenten nicht ausdrücklich erwähnt.",
        "**Besitzer:** Die Dokumente nennen ihn nicht.",
        "Den Unterlagen ist nichts über ihn zu entnehmen.",
    ];
    check("Wem gehörte der Turm?", &silent, true);
    let claims = [
        "Die Dokumente müssen nicht unterschrieben werden.",
        "Die Dokumente müssen kein Foto enthalten.",
        "Dokumente enthalten kein Foto.",
        "Die Reisedokumente enthalten kein Foto.",
        "Die Dokumente des Reisenden enthalten kein Foto.",
        "Das Kontextmenü enthält kein Löschen.",
        "Die Quellen liefern kein Wasser.",
        "Die Texte haben keine Bilder.",
        "Die Dokumente nennen den König, nicht den Papst.",
        "Die Dokumente nennen den König und nicht den Papst.",
        "Die Dokumente nennen nicht den Papst, sondern den König.",
        "Die Dokumente nennen den König und keinen Papst.",
        "Der Stempel wird in den Dokumenten des Reisenden nicht erwähnt.",
        "Ihre Dokumente enthalten kein Foto.",
        "Die Dokumente werden nicht geprüft.",
        "In den Dokumenten werden keine Stempel gebraucht.",
        "Der König hat bezahlt, die Dokumente nennen ihn nicht.",
        "In den Reisedokumenten wird der Besitzer nicht genannt.",
    ];
    check("Wem gehörte der Turm?", &claims, false);
}

#[test]
fn silence_of_the_documents_is_found_in_french() {
    let silent = [
        "Les documents fournis ne mentionnent pas le propriétaire.",
        "Le contexte ne contient aucune information sur le propriétaire.",
        "Les passages ne précisent pas explicitement qui a payé.",
        "Malheureusement, les textes n'indiquent pas la date.",
        "Ces sources ne disent rien du propriétaire.",
        "Les documents ne permettent pas de savoir qui a payé.",
        "Les extraits ne font aucune mention du propriétaire.",
        "Le propriétaire n'est pas mentionné dans les documents fournis.",
        "Il n'y a pas d'informations sur le propriétaire dans les documents.",
    ];
    check("À qui était la tour ?", &silent, true);
    let claims = [
        "Les documents ne doivent pas être signés.",
        "Les documents de voyage ne contiennent pas de photo.",
        "Des documents ne contiennent pas de photo.",
        "Les sources ne sont pas potables.",
        "Le menu contextuel ne contient pas Supprimer.",
        "Le roi a payé et les documents ne disent pas quand.",
        "Il n'est pas mentionné dans les documents de voyage.",
    ];
    check("À qui était la tour ?", &claims, false);
}
